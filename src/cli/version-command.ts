import type { Command } from 'commander';
import { outputOption } from './options.ts';
import type { On } from './program.ts';

/** `version`. */
export function defineVersion(version: Command, on: On): void {
  on(version.addOption(outputOption(['text', 'json', 'yaml'])), async () => (await import('./version.ts')).runVersion);
}
