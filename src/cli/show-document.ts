import { stringify } from 'yaml';
import type { CommandOptions } from './program.ts';
import { flagText } from './read-options.ts';

export type DocumentFormat = 'text' | 'json' | 'yaml';

/** What `-o` says. */
export function formatOf(options: CommandOptions): DocumentFormat {
  return (flagText(options, 'output') ?? 'text') as DocumentFormat;
}

/** A result for machines, in the order of its members. */
export function renderDocument(value: object, format: 'json' | 'yaml'): string {
  if (format === 'json') return `${JSON.stringify(value, null, 2)}\n`;
  // Texts that YAML 1.1 takes for something else (`on`, `1_000`) come in quotes, as Kubernetes' readers need it.
  return stringify(value, { lineWidth: 0, version: '1.1', aliasDuplicateObjects: false });
}
