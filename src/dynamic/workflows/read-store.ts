import { AppError, isAppError } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import { readJournal } from '../../host/access/journal.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FactQuery, FileFact } from '../../host/facts/query.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { observeKubeletFlags } from '../../kubelet/effective/observe-kubelet.ts';
import { explainKubeletFailure } from '../../kubelet/facts/kubelet-failure.ts';
import { isConfigMapKey } from '../../kubelet/layers/config-source.ts';
import { validatePayload } from '../agent/validate-payload.ts';
import type { CheckpointComparison, MetaName, NativeCheckpoint, ObservedStore, PayloadReading } from '../native/native-report.ts';
import { hasSafeStorePath, nativeCheckpointDirectory, nativeStorePaths, parseMetaFile } from '../native/native-store.ts';

export type ReadStore = Awaited<ReturnType<typeof readStore>>;

/**
 * Reads the dynamic configuration store of a kubelet up to 1.23. Nothing is changed.
 * @throws AppError DYNAMIC_NOT_ENABLED (exit code 3) if the kubelet runs without `--dynamic-config-dir`,
 *   KUBELET_MISSING, KUBELET_UNSUPPORTED
 */
export async function readStore(
  host: Host,
  {
    catalogue,
    directory: given,
    journalSeconds = 120,
    cluster = null,
    signal,
  }: {
    readonly catalogue: Catalogue;
    /** Null: the value of the kubelet's flag. */
    readonly directory: string | null;
    /** Period in which failures of the kubelet count; default two minutes. */
    readonly journalSeconds?: number;
    /** Cluster for comparing checkpoints with their ConfigMaps; null: no comparison. */
    readonly cluster?: Cluster | null;
    readonly signal?: AbortSignal | undefined;
  },
) {
  const { flags, unit, minor, version, hostname } = await observeKubeletFlags(host, catalogue, signal);
  const flag = (name: string): string | undefined => flags.findLast((one) => one.name === name)?.value;
  const directory = given ?? flag('dynamic-config-dir') ?? '';
  if (directory === '') throw notEnabled(host.name, version, minor);
  const paths = nativeStorePaths(directory);
  const facts = combineFacts({
    meta: fileFacts([paths.assigned, paths.lastKnownGood]),
    metaNames: listFact([paths.meta]),
    uids: listFact([paths.checkpoints]),
    clock: defineFact({ date: { kind: 'command', argv: ['date', '+%s'] } }, ({ date }) => Number(date.stdout.trim())),
  });
  const { meta, metaNames, uids, clock } = await observe(host, facts, signal);
  const { checkpoints, leftovers } = await readCheckpoints(host, paths.checkpoints, uids.get(paths.checkpoints) ?? [], signal);
  const files = { assigned: meta.get(paths.assigned) ?? null, lastKnownGood: meta.get(paths.lastKnownGood) ?? null };
  const payloads = {
    assigned: await readPayload(host, files.assigned, { directory, minor, catalogue }, signal),
    lastKnownGood: await readPayload(host, files.lastKnownGood, { directory, minor, catalogue }, signal),
  } satisfies Record<MetaName, PayloadReading>;
  const comparisons = {
    assigned: await compareCheckpoint(host, files.assigned, { directory, cluster }, signal),
    lastKnownGood: await compareCheckpoint(host, files.lastKnownGood, { directory, cluster }, signal),
  } satisfies Record<MetaName, CheckpointComparison>;
  const journal = await readJournal(host, { unit: 'kubelet', since: `-${journalSeconds}s`, lines: 2000, bootOnly: true }, signal);
  const recentFailures = journal?.match(/^kubelet\.service: Failed with result /gm)?.length ?? 0;
  const tmp = (metaNames.get(paths.meta) ?? []).filter((name) => name.startsWith('tmp_')).map((name) => `${paths.meta}/${name}`);
  const reading: ObservedStore = {
    directory,
    now: clock,
    unit,
    files,
    payloads,
    comparisons,
    checkpoints,
    leftovers: [...tmp, ...leftovers],
    recentFailures,
    failure: recentFailures === 0 && unit?.activeState !== 'failed' ? null : explainKubeletFailure(unit, journal),
  };
  return { reading, kubeletVersion: version, nodeName: flag('hostname-override') ?? hostname, configFile: flag('config') ?? null };
}

function notEnabled(host: string, version: string, minor: Minor): AppError {
  const isNative = minor <= LAST_DYNAMIC_MINOR;
  const message = isNative
    ? `kubelet ${version} runs without --dynamic-config-dir`
    : `no kubeletadm agent is installed, and kubelet ${version} has no built-in dynamic configuration`;
  const hint = isNative
    ? `Enable dynamic configuration with kubeletadm dynamic enable ${host}, or pass the directory to inspect with --dynamic-config-dir`
    : `Install the agent with kubeletadm dynamic enable ${host}`;
  return new AppError({ host, code: 'DYNAMIC_NOT_ENABLED', message, hint }, { exitCode: 3 });
}

/** The names in directories; empty for a missing directory. */
function listFact(paths: readonly string[]) {
  const queries: Record<string, FactQuery> = Object.fromEntries(paths.map((path) => [path, { kind: 'list', path } as const]));
  return defineFact(
    queries,
    (answers) => new Map(paths.map((path) => [path, (answers as Record<string, readonly string[] | null>)[path] ?? []])),
  );
}

async function readCheckpoints(
  host: Host,
  root: string,
  uids: readonly string[],
  signal?: AbortSignal,
): Promise<{ readonly checkpoints: readonly NativeCheckpoint[]; readonly leftovers: readonly string[] }> {
  const versions = await observe(host, listFact(uids.map((uid) => `${root}/${uid}`)), signal);
  const all = uids.flatMap((uid) => (versions.get(`${root}/${uid}`) ?? []).map((resourceVersion) => ({ uid, resourceVersion })));
  const isLeftover = ({ resourceVersion }: { readonly resourceVersion: string }): boolean => resourceVersion.startsWith('tmp_');
  const at = ({ uid, resourceVersion }: { readonly uid: string; readonly resourceVersion: string }): string =>
    `${root}/${uid}/${resourceVersion}`;
  const keys = await observe(host, listFact(all.map(at)), signal);
  return {
    checkpoints: all.filter((one) => !isLeftover(one)).map((one) => ({ ...one, keys: keys.get(at(one)) ?? [] })),
    leftovers: all.filter(isLeftover).map(at),
  };
}

/** Errors of the payload that a meta file names; empty if it names none. */
async function readPayload(
  host: Host,
  file: FileFact | null,
  { directory, minor, catalogue }: { readonly directory: string; readonly minor: Minor; readonly catalogue: Catalogue },
  signal?: AbortSignal,
): Promise<PayloadReading> {
  const meta = file?.type === 'file' ? parseMetaFile(file.content ?? '') : null;
  if (meta?.kind !== 'source') return [];
  if (!hasSafeStorePath(meta.identity)) return null;
  const path = `${nativeCheckpointDirectory(directory, meta.identity)}/${meta.identity.kubeletConfigKey}`;
  const text = (await observe(host, fileFacts([path]), signal)).get(path)?.content;
  if (text === undefined) return null;
  const problems = await validatePayload(text, path, { minors: [minor], catalogue, native: false, lenient: true });
  return problems.filter(({ severity }) => severity !== 'warning');
}

/** Compares the checkpoint that a meta file names, file by file, with the same version of its ConfigMap. */
async function compareCheckpoint(
  host: Host,
  file: FileFact | null,
  { directory, cluster }: { readonly directory: string; readonly cluster: Cluster | null },
  signal?: AbortSignal,
): Promise<CheckpointComparison> {
  const unknown = (why: string): CheckpointComparison => ({ kind: 'unknown', why });
  const meta = file?.type === 'file' ? parseMetaFile(file.content ?? '') : null;
  if (meta?.kind !== 'source' || !hasSafeStorePath(meta.identity)) return unknown('the meta file does not name a ConfigMap');
  if (cluster === null) return unknown('no kubeconfig was given');
  const { namespace, name, uid, resourceVersion } = meta.identity;
  const where = `ConfigMap ${namespace}/${name}`;
  let found: KubeObject | null;
  try {
    found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name });
  } catch (error) {
    if (!isAppError(error)) throw error;
    return unknown(error.problems[0]?.message ?? error.code);
  }
  if (found === null) return unknown(`${where} does not exist`);
  const { metadata, immutable, data = {} } = found;
  if (metadata.uid !== uid) return unknown(`${where} was deleted and re-created`);
  // The labels of an immutable ConfigMap can change, its data cannot.
  if (metadata.resourceVersion !== resourceVersion && immutable !== true)
    return unknown(`${where} has changed: its resourceVersion is now ${metadata.resourceVersion ?? ''}`);
  const checkpoint = nativeCheckpointDirectory(directory, meta.identity);
  const desired = Object.entries(data as Readonly<Record<string, string>>).filter(([key]) => isConfigMapKey(key));
  const texts = await observe(host, fileFacts(desired.map(([key]) => `${checkpoint}/${key}`)), signal);
  for (const [key, content] of desired) {
    const path = `${checkpoint}/${key}`;
    const text = texts.get(path)?.content;
    if (text === content) continue;
    const [is, should] = [Buffer.byteLength(text ?? ''), Buffer.byteLength(content)];
    const source = `key ${key} of ${where}`;
    const why =
      text === undefined
        ? `is missing, but ${source} exists`
        : is === should
          ? `differs from ${source}`
          : `has ${is} bytes, but ${source} has ${should}`;
    return { kind: 'torn', path, why };
  }
  return { kind: 'equal' };
}
