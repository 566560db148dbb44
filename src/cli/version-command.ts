import type { Command } from 'commander';
import type { On } from './command.ts';
import { outputOption } from './options.ts';

/** `version`. */
export function defineVersion(version: Command, on: On): void {
  on(version.addOption(outputOption(['text', 'json', 'yaml'])), async () => (await import('./version.ts')).runVersion);
}
