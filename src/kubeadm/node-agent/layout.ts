import { createHash } from 'node:crypto';
import { type Json, parseJsonObject } from '../../base/json.ts';
import { type ConfigIdentity, formatIdentity, parseIdentity } from '../../kubelet/config-source.ts';

/** Where an agent keeps what it needs to start a kubelet without an API server. For root alone. */
export const AGENT_DIRECTORY = '/var/lib/kubelet/kubeletadm-agent';
/** The file of a checkpoint that the kubelet reads. */
export const PAYLOAD_FILE = 'kubelet.yaml';
/** Says of a checkpoint which files belong to it. Written last. */
export const MANIFEST_FILE = 'manifest.json';

/** The files of a checkpoint by name: the configuration and what it names beside itself. */
export type CheckpointFiles = Readonly<Record<string, string>>;

/** The name of a checkpoint: the hash of all a kubelet gets to read. */
export function hashOfFiles(files: CheckpointFiles): string {
  const entries = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return createHash('sha256').update(JSON.stringify(entries)).digest('hex');
}

/** Whether a text may be the name of a checkpoint. */
export function isHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** The directory of all checkpoints. */
export function checkpointsDirectory(directory: string): string {
  return `${directory}/checkpoints`;
}

/** The directory of one. */
export function checkpointDirectory(directory: string, hash: string): string {
  return `${checkpointsDirectory(directory)}/${hash}`;
}

/** The two files the state is written to in turn, so that one is whole at any time. */
export function stateFiles(directory: string): readonly [string, string] {
  return [`${directory}/state-0.json`, `${directory}/state-1.json`];
}

/** What systemd reads when it starts the kubelet: which configuration it is to read. Absent: the local one. */
export function pointerFile(directory: string): string {
  return `${directory}/active.env`;
}

/** The pointer to the configuration that a rollback restores, written before a trial: a rollback renames it, which takes no space. */
export function rollbackPointerFile(directory: string): string {
  return `${directory}/rollback.env`;
}

/** Which requests the API server refuses the agent: read by `dynamic inspect`, where the Node cannot say it. */
export function accessFile(directory: string): string {
  return `${directory}/access.json`;
}

/** A file that only takes space: it is removed when the disk is full, so that the state of a rollback can still be written. */
export function reserveFile(directory: string): string {
  return `${directory}/reserve`;
}

/** The text of that file. Larger than any state file; not compressible by a file system. */
export function reserveText(): string {
  let text = '';
  for (let i = 0; text.length < RESERVE_BYTES; i++) text += `${createHash('sha512').update(String(i)).digest('base64')}\n`;
  return text;
}

const RESERVE_BYTES = 64 * 1024;

/** Where agents of earlier versions kept a token of their own. */
export function formerTokenFile(directory: string): string {
  return `${directory}/token`;
}

/** The text of the pointer. The path holds the hash, so that the command line of a kubelet says what it runs. */
export function formatPointer(directory: string, hash: string): string {
  return `# Written by kubeletadm agent. To return to the local configuration, remove this file and restart the kubelet.
KUBELET_CONFIG_ARGS=--config=${checkpointDirectory(directory, hash)}/${PAYLOAD_FILE}
`;
}

/** The hash in a pointer, or in the value of a kubelet's `--config`; null for any other text. */
export function hashInPath(text: string): string | null {
  return PAYLOAD_PATH.exec(text)?.[1] ?? null;
}

const PAYLOAD_PATH = new RegExp(`/checkpoints/([0-9a-f]{64})/${PAYLOAD_FILE.replace('.', '\\.')}(?:\\s|$)`);

/** What is known of a checkpoint besides its files. */
export interface Manifest {
  readonly identity: ConfigIdentity;
  readonly files: readonly string[];
}

/** The text of the manifest. */
export function formatManifest({ identity, files }: Manifest): string {
  return `${JSON.stringify({ files, source: formatIdentity(identity) })}\n`;
}

/** Reads a manifest; null when it is torn, or names files that lie elsewhere. */
export function parseManifest(text: string): Manifest | null {
  const parsed = parseJsonObject(text);
  if (parsed === null || !Array.isArray(parsed.files)) return null;
  const identity = parseIdentity(parsed.source);
  const files = parsed.files.filter((name: Json) => typeof name === 'string');
  return identity === null || !files.every(isFileName) ? null : { identity, files };
}

/**
 * Whether a key of a ConfigMap can be a file of a checkpoint. API servers refuse the others already.
 * @see kubernetes/kubernetes pkg/kubelet/kubeletconfig/util/files (1.21)
 */
export function isFileName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && name.length <= 255 && !/[/\0]/.test(name);
}
