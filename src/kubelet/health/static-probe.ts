import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { readJournal } from '../../host/facts/journal.ts';
import type { Host } from '../../host/host.ts';
import type { KubeObject } from '../../kube/object.ts';
import { PROBE_NAME, PROBE_NAMESPACE, type ProbeResult, podErrorIn, probePod, readProbe } from './probe-pod.ts';
import { PROBE_MS } from './signals.ts';

/** The members of a kubelet's configuration that a probe pod depends on. */
export interface ProbedKubelet {
  /** Absolute path of the directory; null: the kubelet runs no static pods. */
  readonly staticPodPath: string | null;
  readonly maxPods: number;
  /** Image of the probe pod. */
  readonly image: string;
}

/** A static probe pod: its manifest, and its mirror pod `NAME-NODE`. */
export interface StaticProbe {
  /** Process of the kubelet that is to start it; null: the one before a trial. */
  readonly pid: number | null;
  readonly name: string;
  readonly path: string;
  readonly startedAt: number;
}

export interface StaticProbePorts {
  readonly host: Host;
  readonly nodeName: string;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly onIssue: (message: string) => void;
  readonly signal: AbortSignal;
}

/** After this time the journal is read for an error about the probe pod. */
const EXPLAINED_MS = 3_000;
const JOURNAL_LINES = 300;

/** Writes the manifest of a probe pod. @returns the reason why that is not possible, as a clause, in place of the probe */
export async function startStaticProbe(
  { host, clock, random, signal }: StaticProbePorts,
  { staticPodPath, image }: ProbedKubelet,
  pid: number | null,
): Promise<StaticProbe | string> {
  if (staticPodPath === null) return 'the kubelet has no staticPodPath';
  // Another name each time, so that the mirror pod of an earlier probe is not taken for this one.
  const suffix = Math.floor(random() * 36 ** 5).toString(36);
  const name = `${PROBE_NAME}-${suffix.padStart(5, '0')}`;
  const path = probeFile(staticPodPath);
  const { directory } = await host.query({ directory: { kind: 'file', path: staticPodPath } }, { signal });
  if (directory?.type !== 'directory') return `${staticPodPath} is not a directory`;
  try {
    const content = encodeYaml(probePod({ name, image }));
    await host.perform([{ kind: 'write-file', path, mode: 0o600, owner: 'root:root', content }]);
  } catch (error) {
    signal.throwIfAborted();
    return `the manifest of the probe pod cannot be written: ${messageOf(error)}`;
  }
  return { pid, name, path, startedAt: clock.now().getTime() };
}

/** Reads the mirror pod of a probe pod. @param pods null: not known */
export function readStaticProbe({ name }: StaticProbe, nodeName: string, pods: readonly KubeObject[] | null): ProbeResult {
  return readProbe(pods?.find(({ metadata }) => metadata.namespace === PROBE_NAMESPACE && metadata.name === `${name}-${nodeName}`) ?? null);
}

/** As `readStaticProbe`, and failed if the kubelet has logged an error about the pod, or does not start it in time. */
export async function observeStaticProbe(
  { host, nodeName, clock, signal }: StaticProbePorts,
  probe: StaticProbe,
  pods: readonly KubeObject[] | null,
): Promise<ProbeResult> {
  const seen = readStaticProbe(probe, nodeName, pods);
  const waitedMs = clock.now().getTime() - probe.startedAt;
  if (seen.state !== 'starting' || waitedMs < EXPLAINED_MS) return seen;
  const since = `@${Math.floor(probe.startedAt / 1000)}`;
  const journal = await readJournal(host, { unit: 'kubelet', since, lines: JOURNAL_LINES, bootOnly: false }, signal);
  const error = journal === null ? null : podErrorIn(journal, `${PROBE_NAMESPACE}/${probe.name}-${nodeName}`);
  if (error !== null) return { state: 'failed', why: error };
  return waitedMs < PROBE_MS.agent ? seen : { state: 'failed', why: `not started within ${PROBE_MS.agent / 1000} s: ${seen.seen}` };
}

/** Removes the manifest of a probe pod. */
export async function removeStaticProbe({ host, onIssue }: StaticProbePorts, { path }: StaticProbe): Promise<void> {
  await host
    .perform([{ kind: 'remove-file', path }])
    .catch((error: unknown) => onIssue(`the manifest ${path} of the probe pod was not removed: ${messageOf(error)}`));
}

/** Removes the manifest that an agent has left. */
export async function removeStaleProbe({ host, signal }: StaticProbePorts, { staticPodPath }: ProbedKubelet): Promise<void> {
  if (staticPodPath === null) return;
  const path = probeFile(staticPodPath);
  const { file } = await host.query({ file: { kind: 'file', path, content: false } }, { signal });
  if (file !== null) await host.perform([{ kind: 'remove-file', path }]);
}

function probeFile(staticPodPath: string): string {
  return `${staticPodPath}/${PROBE_NAME}.yaml`;
}
