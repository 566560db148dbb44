import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject, parseJsonObject } from '../../base/json.ts';
import { type ConfigIdentity, formatIdentity, parseIdentity } from '../layers/config-source.ts';

/** The configuration file of a checkpoint, read by the kubelet. */
export const PAYLOAD_FILE = 'kubelet.yaml';
/** Lists the files of a checkpoint. Written last. */
export const MANIFEST_FILE = 'manifest.json';

/**
 * Directory below a checkpoint with all keys of the ConfigMap, for the operator: the kubelet does not read it, and it is
 * not part of the hash. No key of a ConfigMap has this name (IsConfigMapKey in k8s.io/apimachinery).
 */
export const DATA_DIRECTORY = '..data';

/** The files of a checkpoint by name: the configuration and the files that it refers to. */
export type CheckpointFiles = Readonly<Record<string, string>>;

/** The name of a checkpoint: the hash of all files that the kubelet reads. */
export function hashOfFiles(files: CheckpointFiles): string {
  const entries = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return createHash('sha256').update(JSON.stringify(entries)).digest('hex');
}

/** Whether a text can be the name of a checkpoint. */
export function isHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

const fileNamed =
  (name: string) =>
  (directory: string): string =>
    `${directory}/${name}`;

export const checkpointsDirectory = fileNamed('checkpoints');

/** The directory of one checkpoint. */
export function checkpointDirectory(directory: string, hash: string): string {
  return `${checkpointsDirectory(directory)}/${hash}`;
}

/** The two state files, written alternately so that one is always complete. */
export function stateFiles(directory: string): readonly [string, string] {
  return [`${directory}/state-0.json`, `${directory}/state-1.json`];
}

/** Environment file for the kubelet unit that selects the configuration. Absent: local configuration. */
export const pointerFile = fileNamed('active.env');
/**
 * The pointer to the rollback configuration, written before a trial: a rollback only renames it, which works
 * on a full disk.
 */
export const rollbackPointerFile = fileNamed('rollback.env');
/** Requests of the agent that the API server rejected: for `dynamic inspect` when the Node status cannot show them. */
export const accessFile = fileNamed('access.json');
/** The signers whose configurations the agent accepts. Written by `dynamic enable --require-signature`. */
export const signersFile = fileNamed('signers.yaml');
/** The signed configuration that the agent accepted last: older ones are refused. */
export const acceptedFile = fileNamed('accepted.json');
/** State files of the kubelet's managers that a trial removed: a rollback restores them. */
export const managerStatesFile = fileNamed('manager-states.json');
/** Reserves disk space: removed when the disk is full, so that the state of a rollback can be written. */
export const reserveFile = fileNamed('reserve');
/** Where agents of earlier versions stored their own token. */
export const formerTokenFile = fileNamed('token');

/** The content of `reserveFile`: larger than any state file and not compressible by a file system. */
export function reserveText(): string {
  let text = '';
  for (let i = 0; text.length < RESERVE_BYTES; i++) text += `${createHash('sha512').update(String(i)).digest('base64')}\n`;
  return text;
}

const RESERVE_BYTES = 64 * 1024;

/** The content of the pointer. The path contains the hash, so that the kubelet command line shows the checkpoint. */
export function formatPointer(directory: string, hash: string): string {
  return `# Written by kubeletadm agent. Remove it and restart the kubelet for the local configuration.
KUBELET_CONFIG_ARGS=--config=${checkpointDirectory(directory, hash)}/${PAYLOAD_FILE}
`;
}

/** The hash in a pointer, or in the value of a kubelet's `--config`; null for other texts. */
export function hashInPath(text: string): string | null {
  return PAYLOAD_PATH.exec(text)?.[1] ?? null;
}

const PAYLOAD_PATH = new RegExp(`/checkpoints/([0-9a-f]{64})/${PAYLOAD_FILE.replace('.', '\\.')}(?:\\s|$)`);

/** Metadata of a checkpoint. */
export interface CheckpointManifest {
  readonly identity: ConfigIdentity;
  readonly files: readonly string[];
  /**
   * The leaves that an overlay sets: the payload has the other fields of the local configuration. Null: the
   * ConfigMap is complete and replaces the local configuration. Absent: written by an earlier version of the agent.
   */
  readonly sets?: readonly string[] | null;
  /** Key and line of each field in the ConfigMap. Absent: written by an earlier version of the agent. */
  readonly places?: Readonly<Record<string, string>> | undefined;
  /** The keys of the ConfigMap, each a file in `DATA_DIRECTORY`. Absent: written by an earlier version of the agent. */
  readonly keys?: readonly string[] | undefined;
}

export function formatManifest({ identity, files, sets, places, keys }: CheckpointManifest): string {
  return `${JSON.stringify({ files, source: formatIdentity(identity), ...(sets === undefined ? {} : { sets }), places, keys })}\n`;
}

/** Reads a manifest; null when it is truncated or names files outside the checkpoint. */
export function parseManifest(text: string): CheckpointManifest | null {
  const parsed = parseJsonObject(text);
  if (parsed === null || !Array.isArray(parsed.files)) return null;
  const identity = parseIdentity(parsed.source);
  const files = parsed.files.filter((name: Json) => typeof name === 'string');
  if (identity === null || !files.every(isFileName)) return null;
  const { sets, keys } = parsed;
  const read = {
    identity,
    files,
    ...(isJsonObject(parsed.places) ? { places: textsOf(parsed.places) } : {}),
    ...(Array.isArray(keys) ? { keys: keys.filter((name: Json) => typeof name === 'string') } : {}),
  };
  if (sets === null) return { ...read, sets };
  return Array.isArray(sets) ? { ...read, sets: sets.filter((path: Json) => typeof path === 'string') } : read;
}

function textsOf(object: JsonObject): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(object).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])));
}

/**
 * Whether a key of a ConfigMap can be a file name in a checkpoint. API servers already reject other keys.
 * @see kubernetes/kubernetes pkg/kubelet/kubeletconfig/util/files (1.21)
 */
export function isFileName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && name.length <= 255 && !/[/\0]/.test(name);
}
