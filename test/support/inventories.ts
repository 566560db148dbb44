import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** An inventory of test/data/inventories.yaml. */
export interface Inventory {
  readonly name: string;
  readonly ext?: string;
  readonly text: string;
  readonly code?: number;
  readonly controlPlanes?: readonly string[];
  readonly workers?: readonly string[];
  readonly bastions?: readonly string[];
  readonly ssh?: Readonly<Record<string, string>>;
  readonly stderr?: readonly string[];
}

/** The output of ansible-inventory --list for an inventory. */
export interface AnsibleVerdict {
  readonly name: string;
  readonly list: unknown;
  readonly stderr: string;
}

/** Recorded by RECORD_GOLDEN=1 with test/slow/ansible-verdicts.test.ts. */
export const VERDICTS = new URL('../data/inventories.ansible.jsonl', import.meta.url);

export function readInventories(): readonly Inventory[] {
  return parse(readFileSync(new URL('../data/inventories.yaml', import.meta.url), 'utf8')) as readonly Inventory[];
}

export function readVerdicts(): readonly AnsibleVerdict[] {
  return readFileSync(VERDICTS, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as AnsibleVerdict);
}
