import type { Command } from 'commander';
import type { On } from './command.ts';
import type { CompletionRequest } from './completion.ts';
import { addSections } from './help-layout.ts';

/** `completion bash|zsh|fish`. */
export function defineCompletion(completion: Command, on: On): void {
  addSections(completion.argument('<shell>', 'bash, zsh or fish'), { examples: EXAMPLES });
  on(
    completion,
    ([shell]): CompletionRequest => ({ program: completion.parent?.name() ?? 'kubeletadm', shell }),
    async (...args) => (await import('./completion.ts')).runCompletion(...args),
  );
}

const EXAMPLES = `  source <(kubeletadm completion bash)
  kubeletadm completion fish > ~/.config/fish/completions/kubeletadm.fish`;
