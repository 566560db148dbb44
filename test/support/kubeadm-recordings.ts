import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { KubeObject } from '../../src/kube/object.ts';

/** The output of kubeadm 1.36.2 for an input, and the input for `--config`. */
export interface InitRecording {
  readonly name: string;
  readonly input: string;
  readonly expected: InitExpectation;
}

export interface InitExpectation {
  /** By path; absent when the recording contains only the kubelet's files. */
  readonly files?: Readonly<Record<string, string>>;
  readonly kubeletFiles: Readonly<Record<string, string>>;
  /** Each certificate by its path below the certificate directory. */
  readonly pki?: Readonly<Record<string, object>>;
  readonly kubeconfigs?: Readonly<Record<string, object>>;
  /** Recordings with a subset of objects: the objects of the kubelet's configuration. */
  readonly objects?: readonly KubeObject[];
  readonly apiActions?: readonly RecordedAction[];
}

export interface RecordedAction {
  readonly action: 'CREATE' | 'PATCH' | 'UPDATE';
  readonly resource: string;
  /** Absent when only a name was sent. */
  readonly object?: KubeObject;
}

/** The recordings of the repository, and their sources if they exist on the local host. */
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
