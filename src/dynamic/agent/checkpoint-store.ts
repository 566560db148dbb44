import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import type { Operation } from '../../host/operation/operation.ts';
import {
  accessFile,
  type CheckpointFiles,
  type CheckpointManifest,
  checkpointDirectory,
  checkpointsDirectory,
  DATA_DIRECTORY,
  formatManifest,
  formatPointer,
  hashInPath,
  hashOfFiles,
  isFileName,
  isHash,
  MANIFEST_FILE,
  parseManifest,
  pointerFile,
  reserveFile,
  reserveText,
  rollbackPointerFile,
  stateFiles,
} from '../../kubelet/node-agent/layout.ts';
import { type AccessProblem, formatAccess, parseAccess } from './cluster-access.ts';
import type { AgentState } from './state.ts';
import { formatStateFile, parseStateFile } from './state-file.ts';

/** The source of a payload. `data`: that of the ConfigMap; absent: the stored keys are kept. */
type CheckpointOrigin = Pick<CheckpointManifest, 'identity' | 'sets' | 'places'> & { readonly data?: Readonly<Record<string, string>> };

export type StoredAgent = Awaited<ReturnType<typeof loadAgent>>;
export type CheckpointStore = ReturnType<typeof checkpointStore>;

const OWNER = 'root:root';

/**
 * Files of an agent on the disk of its node. Every method is atomic: an interrupted call has no effect on
 * readers. Errors are those of `host.query` and `host.perform`.
 */
export function checkpointStore(host: Host, directory: string) {
  const pointerIn = async (path: string): Promise<string | null> =>
    hashInPath((await observe(host, fileFacts([path]))).get(path)?.content ?? '');
  /** Null: no such checkpoint. */
  const findCheckpoint = async (hash: string) => (await readCheckpoints(host, directory, [hash]))[0] ?? null;
  /** The hash that a rollback restores by a rename; null: none. */
  const readRollbackPointer = (): Promise<string | null> => pointerIn(rollbackPointerFile(directory));
  /** Removes unneeded checkpoints except the newest `spare`. */
  const collect = (needed: readonly string[], spare: number) => collectCheckpoints(host, directory, needed, spare);
  return {
    findCheckpoint,
    readRollbackPointer,
    collect,
    /** Loads everything and checks the content of each checkpoint against its name. */
    load: (signal?: AbortSignal) => loadAgent(host, directory, signal),
    /** Overwrites the older of the two copies. */
    saveState: async (state: AgentState, generation: number): Promise<void> => {
      const path = stateFiles(directory)[generation % 2] as string;
      const content = formatStateFile({ generation, state });
      await host.perform([privateDirectory(directory), writeFile(path, content)]);
    },
    /**
     * Intact files are not written again: their times show whether a kubelet started later has read them.
     * Damaged files are repaired.
     */
    saveCheckpoint: async (hash: string, files: CheckpointFiles, origin: CheckpointOrigin): Promise<void> => {
      const operations = await checkpointChanges(host, directory, hash, files, origin);
      if (operations.length > 0) await host.perform(operations);
    },
    /** Null: missing or damaged. */
    readCheckpoint: async (hash: string): Promise<CheckpointFiles | null> => (await findCheckpoint(hash))?.files ?? null,
    pointTo: (hash: string | null, prepared: string | null = null) => pointerChanges(directory, hash, prepared),
    readPointer: (): Promise<string | null> => pointerIn(pointerFile(directory)),
    /**
     * Reserves disk space for a rollback before a trial: writes the rollback pointer, and a file that
     * `freeReserve` removes. Unneeded checkpoints are removed when the disk is full.
     * @param hash checkpoint that a rollback restores; null: the local configuration, which needs no space
     */
    reserveRollback: async (hash: string | null, needed: readonly string[]): Promise<void> => {
      const operations = await reserveChanges(host, directory, hash === (await readRollbackPointer()) ? null : hash);
      if (operations.length === 0) return;
      await host.perform(operations).catch(async (error: unknown) => {
        if ((await collect(needed, 0)).length === 0) throw error;
        await host.perform(operations);
      });
    },
    /** Removes unneeded checkpoints and the reserved file, so that a small file can be written to a full disk. */
    freeReserve: async (needed: readonly string[]): Promise<void> => {
      await collect(needed, 0);
      await host.perform([{ kind: 'remove-file', path: reserveFile(directory) }]);
    },
    /** Writes the requests that the API server refuses; removes the file if none is refused. */
    saveAccess: async (problems: readonly AccessProblem[]): Promise<void> => {
      const path = accessFile(directory);
      const write = [privateDirectory(directory), writeFile(path, formatAccess(problems))];
      await host.perform(problems.length === 0 ? [{ kind: 'remove-file', path }] : write);
    },
  };
}

async function collectCheckpoints(host: Host, directory: string, needed: readonly string[], spare: number): Promise<readonly string[]> {
  const others = (await listCheckpoints(host, directory)).filter(({ hash }) => !needed.includes(hash));
  const old = others.toSorted((a, b) => b.writtenAt - a.writtenAt).slice(spare);
  const removals = old.flatMap(({ hash }) => removeCheckpoint(checkpointDirectory(directory, hash)));
  if (removals.length > 0) await host.perform(removals);
  return old.map(({ hash }) => hash);
}

async function listCheckpoints(host: Host, directory: string, signal?: AbortSignal) {
  const names = await listOf(host, checkpointsDirectory(directory), signal);
  return readCheckpoints(host, directory, names.filter(isHash), signal);
}

async function loadAgent(host: Host, directory: string, signal?: AbortSignal) {
  const [first, second] = stateFiles(directory);
  const found = await observe(host, fileFacts([first, second, pointerFile(directory), accessFile(directory)]), signal);
  const copies = [first, second].map((path) => ({ path, file: found.get(path) ?? null }));
  const read = copies.map(({ file }) => (file?.content === undefined ? null : parseStateFile(file.content)));
  const newest = read.reduce((best, one) => (one !== null && one.generation > (best?.generation ?? -1) ? one : best), null);
  return {
    /** Null: no state file exists, or none can be read. */
    state: newest?.state ?? null,
    generation: newest?.generation ?? 0,
    /** Existing state files that cannot be read. */
    damaged: copies.filter(({ file }, i) => file !== null && read[i] === null).map(({ path }) => path),
    checkpoints: await listCheckpoints(host, directory, signal),
    /** Requests of the agent that the API server refused last time. */
    access: parseAccess(found.get(accessFile(directory))?.content ?? ''),
    /** Payload of the next kubelet start; null: the local configuration. */
    pointer: hashInPath(found.get(pointerFile(directory))?.content ?? ''),
  };
}

/** The manifest is removed first, so that a partially removed checkpoint no longer counts as one. */
function removeCheckpoint(path: string): readonly Operation[] {
  return [
    { kind: 'remove-file', path: `${path}/${MANIFEST_FILE}` },
    { kind: 'empty-directory', path },
    { kind: 'remove-directory', path },
  ];
}

async function checkpointChanges(
  host: Host,
  directory: string,
  hash: string,
  files: CheckpointFiles,
  { data, ...origin }: CheckpointOrigin,
): Promise<readonly Operation[]> {
  const at = checkpointDirectory(directory, hash);
  const [found] = await readCheckpoints(host, directory, [hash]);
  const stored = found?.files == null ? null : found.manifest;
  const keys = data === undefined ? stored?.keys : Object.keys(data).filter(isFileName).sort();
  const manifest = formatManifest({ ...origin, files: Object.keys(files).sort(), keys });
  const payload = [
    privateDirectory(directory),
    privateDirectory(checkpointsDirectory(directory)),
    privateDirectory(at),
    ...Object.entries(files).map(([name, text]) => writeFile(`${at}/${name}`, text)),
  ];
  return [
    ...(stored === null ? payload : []),
    ...(data === undefined ? [] : await dataChanges(host, `${at}/${DATA_DIRECTORY}`, data)),
    ...(stored !== null && formatManifest(stored) === manifest ? [] : [writeFile(`${at}/${MANIFEST_FILE}`, manifest)]),
  ];
}

/**
 * The operations that select a checkpoint for the next kubelet start; null: the local configuration.
 * @param prepared result of `readRollbackPointer`: the same hash is set by a rename, which needs no disk space
 */
function pointerChanges(directory: string, hash: string | null, prepared: string | null): readonly Operation[] {
  const path = pointerFile(directory);
  if (hash === null) return [{ kind: 'remove-file', path }];
  if (hash === prepared) return [{ kind: 'move-file', path: rollbackPointerFile(directory), to: path }];
  return [privateDirectory(directory), writeFile(path, formatPointer(directory, hash))];
}

/** @param hash the new rollback pointer; null: it stays */
async function reserveChanges(host: Host, directory: string, hash: string | null): Promise<readonly Operation[]> {
  const reserve = reserveFile(directory);
  // The file is renamed to this name only once it is complete.
  const { reserved } = await host.query({ reserved: { kind: 'file', path: reserve, content: false } });
  const missing = [
    ...(hash === null ? [] : [writeFile(rollbackPointerFile(directory), formatPointer(directory, hash))]),
    ...(reserved === null ? [writeFile(reserve, reserveText())] : []),
  ];
  return missing.length === 0 ? [] : [privateDirectory(directory), ...missing];
}

/**
 * The operations after which a directory has exactly the keys of a ConfigMap, as the checkpoints of kubelets up to 1.23
 * had them. Those kubelets dropped `binaryData` as well.
 * @see kubernetes/kubernetes pkg/kubelet/kubeletconfig/checkpoint/configmap.go (1.21)
 */
async function dataChanges(host: Host, directory: string, data: Readonly<Record<string, string>>): Promise<readonly Operation[]> {
  const entries = Object.entries(data).filter(([name]) => isFileName(name));
  const stored = await listOf(host, directory);
  const found = await observe(host, fileFacts(entries.map(([name]) => `${directory}/${name}`)));
  return [
    ...(stored.length === 0 ? [privateDirectory(directory)] : []),
    ...entries
      .filter(([name, text]) => found.get(`${directory}/${name}`)?.content !== text)
      .map(([name, text]) => writeFile(`${directory}/${name}`, text)),
    ...stored
      .filter((name) => !Object.hasOwn(data, name))
      .map((name): Operation => ({ kind: 'remove-file', path: `${directory}/${name}` })),
  ];
}

/**
 * Reads checkpoints with their manifest (null: it cannot be read), their files (null: one is missing, truncated or modified), the
 * write time of the manifest in Unix seconds (0: unknown), and that of the last write to any of the files.
 */
async function readCheckpoints(host: Host, directory: string, hashes: readonly string[], signal?: AbortSignal) {
  if (hashes.length === 0) return [];
  const manifestOf = (hash: string): string => `${checkpointDirectory(directory, hash)}/${MANIFEST_FILE}`;
  const found = await observe(host, fileFacts(hashes.map(manifestOf)), signal);
  const known = hashes.map((hash) => {
    const file: FileFact | null = found.get(manifestOf(hash)) ?? null;
    return { hash, manifest: file?.content === undefined ? null : parseManifest(file.content), writtenAt: file?.modifiedAt ?? 0 };
  });
  const pathsOf = ({ hash, manifest }: (typeof known)[number]): readonly string[] =>
    (manifest?.files ?? []).map((name) => `${checkpointDirectory(directory, hash)}/${name}`);
  const paths = known.flatMap(pathsOf);
  const texts = paths.length === 0 ? new Map<string, FileFact | null>() : await observe(host, fileFacts(paths), signal);
  return known.map((one) => {
    const { hash, manifest } = one;
    const files = Object.fromEntries(
      (manifest?.files ?? []).map((name) => [name, texts.get(`${checkpointDirectory(directory, hash)}/${name}`)?.content ?? '']),
    );
    const changedAt = Math.max(0, ...pathsOf(one).map((path) => texts.get(path)?.modifiedAt ?? 0));
    return { ...one, changedAt, files: manifest !== null && hashOfFiles(files) === hash ? files : null };
  });
}

async function listOf(host: Host, path: string, signal?: AbortSignal): Promise<readonly string[]> {
  return (await observe(
    host,
    defineFact({ names: { kind: 'list', path } }, ({ names }) => names ?? []),
    signal,
  )) as readonly string[];
}

function privateDirectory(path: string): Operation {
  return { kind: 'make-directory', path, mode: 0o700, owner: OWNER };
}

function writeFile(path: string, content: string): Operation {
  return { kind: 'write-file', path, mode: 0o600, owner: OWNER, content };
}
