import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type FlagSources, readFlagSources } from '../../src/kubelet/migrate/migrate-files.ts';

/** Sources of test/data/kubelet-flags.yaml. */
export interface KubeletFlags {
  readonly name: string;
  readonly host?: boolean;
  readonly files?: Readonly<Record<string, string>>;
  readonly arguments?: readonly string[];
  readonly words?: readonly string[];
  readonly ignored?: readonly string[];
  readonly notes?: readonly string[];
  readonly fails?: string;
}

export function readKubeletFlags(): readonly KubeletFlags[] {
  return parse(readFileSync(new URL('../data/kubelet-flags.yaml', import.meta.url), 'utf8')) as readonly KubeletFlags[];
}

/** The flags in the files of a case. */
export function flagsOf({ files = {}, arguments: given = [] }: KubeletFlags): Promise<FlagSources> {
  const readText = async (path: string): Promise<string> => files[path] ?? '';
  return readFlagSources({ input: { readText } as never }, [...Object.keys(files), ...given]);
}
