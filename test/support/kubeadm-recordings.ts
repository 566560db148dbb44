import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

/** What kubeadm 1.36.2 wrote for an input, and the input, to be given with `--config`. */
export interface InitRecording {
  readonly name: string;
  readonly input: string;
  readonly expected: InitExpectation;
}

export interface InitExpectation {
  /** By path; absent where the recording is of the kubelet's files alone. */
  readonly files?: Readonly<Record<string, string>>;
  readonly kubeletFiles: Readonly<Record<string, string>>;
  readonly apiActions?: readonly RecordedAction[];
}

export interface RecordedAction {
  readonly action: 'CREATE' | 'PATCH' | 'UPDATE';
  readonly resource: string;
  /** Absent where nothing but a name was sent. */
  readonly object?: { readonly kind: string; readonly metadata: { readonly name: string; readonly namespace?: string } };
}

/** Those of the repository, and more of the same where the machine has them. */
const FOLDERS = [
  fileURLToPath(new URL('../fixtures/kubeadm-1.36.2/init', import.meta.url)),
  fileURLToPath(new URL('../../../shared/data/kubeadm-golden', import.meta.url)),
];

/** All recordings of `kubeadm init`. */
export function initRecordings(): readonly InitRecording[] {
  return FOLDERS.filter((folder) => existsSync(folder)).flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => existsSync(join(folder, name, 'input.yaml')))
      .sort()
      .map((name) => ({
        name: join(folder.split('/').at(-1) ?? '', name),
        input: readFileSync(join(folder, name, 'input.yaml'), 'utf8').replaceAll('@PATCHES@', join(folder, name, 'patches')),
        expected: parse(readFileSync(join(folder, name, 'expected.yaml'), 'utf8')) as InitExpectation,
      })),
  );
}
