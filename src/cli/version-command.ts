import type { Command } from 'commander';
import type { On } from './command.ts';
import { outputOption } from './options.ts';
import { flagChoice } from './request-parts.ts';

/** `version`. */
export function defineVersion(version: Command, on: On): void {
  on(
    version.addOption(outputOption(['text', 'short', 'json', 'yaml'])),
    (_, options) => flagChoice(options, 'output', ['text', 'short', 'json', 'yaml']),
    async (...args) => (await import('./version.ts')).runVersion(...args),
  );
}
