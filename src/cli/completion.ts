import type { Command, Option } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { Services } from './services.ts';

/** One command of the tree. `path` holds the names from the program's down. */
interface Node {
  readonly path: string;
  readonly commands: readonly Command[];
  readonly options: readonly Option[];
}

type Shell = (root: string, nodes: readonly Node[]) => string;

export interface CompletionRequest {
  /** The whole command tree. */
  readonly program: Command;
  readonly shell: string | undefined;
}

/**
 * `completion bash|zsh|fish`: prints a script that completes commands, options and the choices of options.
 * The script does not run kubeletadm.
 */
export async function runCompletion(services: Services, { program, shell }: CompletionRequest): Promise<ExitCode> {
  const render = SHELLS[shell ?? ''];
  if (render === undefined)
    throw usageError(`completion: unsupported shell ${shell ?? '(none given)'}`, `Supported shells: ${Object.keys(SHELLS).join(', ')}`);
  services.output.document(render(program.name(), nodesOf(program, program.name())));
  return 0;
}

function nodesOf(command: Command, path: string): readonly Node[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((each) => command.commands.includes(each));
  const node = { path, commands, options: help.visibleOptions(command) };
  return [node, ...commands.flatMap((each) => nodesOf(each, `${path} ${each.name()}`))];
}

const SHELLS: Readonly<Record<string, Shell>> = {
  bash: renderBash,
  zsh: (root, nodes) => `#compdef ${root}\nautoload -U +X bashcompinit && bashcompinit\n${renderBash(root, nodes)}`,
  fish: renderFish,
};

function renderBash(root: string, nodes: readonly Node[]): string {
  const values = nodes.flatMap(({ path, options }) =>
    options.filter(takesValue).map((option) => {
      const before = namesOf(option).map((name) => quote(`${path} ${name}`));
      const reply = option.argChoices ? `COMPREPLY=($(compgen -W ${quote(option.argChoices.join(' '))} -- "$cur")); ` : '';
      return `    ${before.join('|')}) ${reply}return;;`;
    }),
  );
  const words = nodes.map(({ path, commands, options }) => {
    const all = [...commands.map((each) => each.name()), ...options.flatMap(namesOf)];
    return `    ${quote(path)}) words=${quote(all.join(' '))};;`;
  });
  return `_${root}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path=${root} words= word
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
    ${belowRoot(nodes).map(quote).join('|')}) path="$path $word";;
    esac
  done
  case "$path $prev" in
${values.join('\n')}
  esac
  case $path in
${words.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _${root} ${root}
`;
}

function renderFish(root: string, nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, commands, options }) => {
    const start = `complete -c ${root} -n ${quote(`test (__${root}_path) = "${path}"`)}`;
    return [
      ...commands.map((each) => `${start} -f -a ${each.name()} -d ${quote(each.summary() || each.description())}`),
      ...options.map((option) => `${start} ${fishOption(option)} -d ${quote(option.description)}`),
    ];
  });
  return `function __${root}_path
  set -l path ${root}
  for word in (commandline -opc)[2..-1]
    switch "$path $word"
      case ${belowRoot(nodes).map(quote).join(' ')}
        set path "$path $word"
    end
  end
  echo $path
end
${lines.join('\n')}
`;
}

function fishOption(option: Option): string {
  const short = option.short ? ` -s ${option.short.slice(1)}` : '';
  const value = option.argChoices ? ` -x -a ${quote(option.argChoices.join(' '))}` : takesValue(option) ? ' -r' : '';
  return `-l ${(option.long ?? '').slice(2)}${short}${value}`;
}

function belowRoot(nodes: readonly Node[]): readonly string[] {
  return nodes.slice(1).map(({ path }) => path);
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

function namesOf({ short, long }: Option): readonly string[] {
  return [short, long].filter((name) => name !== undefined);
}

/** In single quotes; fish and sh both take `'\\''`. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
