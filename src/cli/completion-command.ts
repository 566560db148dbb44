import type { Command } from 'commander';
import type { On } from './command.ts';

/** `completion bash|zsh|fish`. */
export function defineCompletion(completion: Command, on: On): void {
  completion.argument('<shell>', 'bash, zsh or fish').addHelpText('after', COMPLETION_EXAMPLES);
  on(completion, async () => {
    const { runCompletion } = await import('./completion.ts');
    return async (services, [shell]) => runCompletion(completion.parent as Command, services, shell);
  });
}

const COMPLETION_EXAMPLES = `
Examples:
  source <(kubeletadm completion bash)
  kubeletadm completion fish > ~/.config/fish/completions/kubeletadm.fish`;
