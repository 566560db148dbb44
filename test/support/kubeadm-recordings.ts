import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { KubeObject } from '../../src/kube/object.ts';

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
  /** Of each certificate, by its path below the directory of certificates. */
  readonly pki?: Readonly<Record<string, object>>;
  readonly kubeconfigs?: Readonly<Record<string, object>>;
  /** Where the whole of them was not recorded: the objects of the kubelet's configuration. */
  readonly objects?: readonly KubeObject[];
  readonly apiActions?: readonly RecordedAction[];
}

export interface RecordedAction {
  readonly action: 'CREATE' | 'PATCH' | 'UPDATE';
  readonly resource: string;
  /** Absent where nothing but a name was sent. */
  readonly object?: KubeObject;
}

/** Those of the repository, and what they were taken from where the machine has it. */
const FOLDERS = [
  fileURLToPath(new URL('../fixtures/kubeadm-1.36.2/init', import.meta.url)),
  fileURLToPath(new URL('../../../shared/data/kubeadm-golden', import.meta.url)),
];

/** All recordings of `kubeadm init`, each once. */
export function initRecordings(): readonly InitRecording[] {
  const folders = FOLDERS.filter((folder) => existsSync(folder)).flatMap((folder) =>
    readdirSync(folder).map((name) => [name, join(folder, name)] as const),
  );
  const recordings = [...new Map(folders)].filter(([, folder]) => existsSync(join(folder, 'input.yaml'))).sort();
  return recordings.map(([name, folder]) => ({
    name,
    input: readFileSync(join(folder, 'input.yaml'), 'utf8').replaceAll('@PATCHES@', join(folder, 'patches')),
    expected: parse(readFileSync(join(folder, 'expected.yaml'), 'utf8')) as InitExpectation,
  }));
}
