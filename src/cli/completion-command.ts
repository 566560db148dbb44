import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { On } from './command.ts';
import { addSections } from './help-layout.ts';
import type { Services } from './output/services.ts';

/** `completion bash|zsh|fish`. */
export function defineCompletion(completion: Command, on: On): void {
  addSections(completion.argument('<shell>', 'bash, zsh or fish'), { examples: EXAMPLES });
  on(completion, ([shell]): CompletionRequest => ({ program: completion.parent?.name() ?? 'kubeletadm', shell }), runCompletion);
}

const EXAMPLES = `  source <(kubeletadm completion bash)
  kubeletadm completion fish > ~/.config/fish/completions/kubeletadm.fish`;

interface CompletionRequest {
  /** Name of the program. */
  readonly program: string;
  readonly shell: string | undefined;
}

/**
 * `completion bash|zsh|fish`: prints a script that completes command lines. The script runs `kubeletadm __complete`
 * with the words up to the cursor.
 */
async function runCompletion(services: Services, { program, shell }: CompletionRequest): Promise<ExitCode> {
  const render = SHELLS[shell ?? ''];
  if (render === undefined)
    throw usageError(`completion: unsupported shell ${shell ?? '(none given)'}`, `Supported shells: ${Object.keys(SHELLS).join(', ')}`);
  services.output.document(render(program));
  return 0;
}

const SHELLS: Readonly<Record<string, (program: string) => string>> = { bash: renderBash, zsh: renderZsh, fish: renderFish };

/** Bash splits words at `=` and `:`: the script joins them, and removes the joined part from the values. */
function renderBash(program: string): string {
  return `# bash completion for ${program}
_${program}() {
  local line=\${COMP_LINE:0:COMP_POINT} words=() word gap i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    [[ $i -eq $COMP_CWORD && $line != *"$word"* ]] && word=\${line##*[[:space:]]}
    gap=\${line%%"$word"*}
    line=\${line#"$gap$word"}
    if [[ -n $word && -z $gap && $i -gt 0 ]]; then words[\${#words[@]}-1]+=$word; else words+=("$word"); fi
  done
  local typed=\${words[\${#words[@]}-1]} part=\${COMP_WORDS[COMP_CWORD]} run=\${words[0]/#\\~/$HOME} value directive=0
  [[ $part == [=:] ]] && part=
  local before=\${typed%"$part"}
  type -t "$run" >/dev/null || run=${program}
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    if [[ $value == :* ]]; then directive=\${value#:}; else COMPREPLY+=("\${value#"$before"}"); fi
  done < <("$run" __complete "\${words[@]:1}" 2>/dev/null)
  if ((directive & 16)); then COMPREPLY=($(compgen -d -- "$part")); fi
  if ((directive & 2)) || [[ \${COMPREPLY[0]} == jsonpath= ]]; then compopt -o nospace 2>/dev/null; fi
  if ((directive & 4)); then compopt +o default 2>/dev/null; fi
}
complete -o default -F _${program} ${program}
`;
}

function renderZsh(program: string): string {
  return `#compdef ${program}
_${program}() {
  local line value directive=0
  local -a lines items more
  lines=("\${(@f)$("\${(Q)words[1]/#\\~/$HOME}" __complete "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  for line in $lines; do
    value=\${line%%$'\\t'*}
    if [[ $value == :* ]]; then directive=\${value#:}; continue; fi
    items+=("\${value//:/\\\\:}:\${\${line#$value}#$'\\t'}")
  done
  (( directive & 2 )) && more=(-S '')
  if (( directive & 16 )); then _files -/
  elif (( $#items )); then _describe -V ${program} items "\${more[@]}"
  elif ! (( directive & 4 )); then _files
  fi
}
if [[ $funcstack[1] == _${program} ]]; then _${program} "$@"; else compdef _${program} ${program}; fi
`;
}

function renderFish(program: string): string {
  return `function __${program}_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l lines ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
  set -l directive (string sub -s 2 -- "$lines[-1]")
  test -n "$directive"; or return
  set -e lines[-1]
  if test (math "bitand($directive, 16)") -ne 0
    __fish_complete_directories "$current"
  else if test (count $lines) -gt 0
    printf '%s\\n' $lines
  else if test (math "bitand($directive, 4)") -eq 0
    __fish_complete_path "$current"
  end
end
complete -c ${program} -f -a '(__${program}_complete)'
`;
}
