import type { Command } from 'commander';
import type { On } from './command.ts';
import { addSections } from './help-layout.ts';

/** `completion bash|zsh|fish`. */
export function defineCompletion(completion: Command, on: On): void {
  addSections(completion.argument('<shell>', 'bash, zsh or fish'), { examples: EXAMPLES });
  on(completion, async () => {
    const { runCompletion } = await import('./completion.ts');
    return async (services, [shell]) => runCompletion(completion.parent as Command, services, shell);
  });
}

const EXAMPLES = `  source <(kubeletadm completion bash)
  kubeletadm completion fish > ~/.config/fish/completions/kubeletadm.fish`;
