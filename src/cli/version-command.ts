import type { Command } from 'commander';
import type { On } from './command.ts';
import { outputOption } from './options.ts';
import { outputRequest } from './request-parts.ts';

/** `version`. */
export function defineVersion(version: Command, on: On): void {
  on(
    version.addOption(outputOption(['text', 'json', 'yaml'])),
    (_, options) => outputRequest(options).format,
    async () => (await import('./version.ts')).runVersion,
  );
}
