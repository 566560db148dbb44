import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import type { Host } from '../../host/access/host.ts';
import { readJournal } from '../../host/access/journal.ts';
import type { KubeObject } from '../../kube/object.ts';
import { PROBE_NAME, PROBE_NAMESPACE, type ProbeResult, podErrorIn, probePod, readProbe } from './probe-pod.ts';
import type { ProbeDriver, ProbeOutcome } from './run-probe.ts';

/** The members of a kubelet's configuration that a probe pod depends on. */
export interface ProbedKubelet {
  /** Absolute path of the directory; null: the kubelet runs no static pods. */
  readonly staticPodPath: string | null;
  readonly maxPods: number;
  /** Image of the probe pod. */
  readonly image: string;
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

export interface StaticProbe extends ProbeDriver {
  observe(): Promise<ProbeResult | ProbeOutcome>;
}

const JOURNAL_LINES = 300;

/**
 * A probe pod as a manifest in the staticPodPath of a kubelet, and its mirror pod `NAME-NODE`.
 * @param pods gives the pods of the node; null: not known
 */
export function staticProbe(
  { host, nodeName, clock, random, onIssue, signal }: StaticProbePorts,
  { staticPodPath, image }: ProbedKubelet,
  pods: () => readonly KubeObject[] | null,
): StaticProbe {
  // Another name each time, so that the mirror pod of an earlier probe is not taken for this one.
  const suffix = Math.floor(random() * 36 ** 5).toString(36);
  const name = `${PROBE_NAME}-${suffix.padStart(5, '0')}`;
  const mirror = `${name}-${nodeName}`;
  let started: { readonly path: string; readonly at: number } | null = null;

  const start = async (): Promise<string | null> => {
    if (staticPodPath === null) return 'the kubelet has no staticPodPath';
    const { directory } = await host.query({ directory: { kind: 'file', path: staticPodPath } }, { signal });
    if (directory?.type !== 'directory') return `${staticPodPath} is not a directory`;
    const path = probeFile(staticPodPath);
    try {
      const content = encodeYaml(probePod({ name, image }));
      await host.perform([{ kind: 'write-file', path, mode: 0o600, owner: 'root:root', content }]);
    } catch (error) {
      signal.throwIfAborted();
      return `the manifest of the probe pod cannot be written: ${messageOf(error)}`;
    }
    started = { path, at: clock.now().getTime() };
    return null;
  };

  return {
    name: `${PROBE_NAMESPACE}/${mirror}`,
    observe: async () => {
      const why = started === null ? await start() : null;
      if (why !== null) return { state: 'not-run', why };
      return readProbe(pods()?.find(({ metadata }) => metadata.namespace === PROBE_NAMESPACE && metadata.name === mirror) ?? null);
    },
    explain: async () => {
      const since = `@${Math.floor((started?.at ?? 0) / 1000)}`;
      const journal = await readJournal(host, { unit: 'kubelet', since, lines: JOURNAL_LINES, bootOnly: false }, signal);
      return journal === null ? null : podErrorIn(journal, `${PROBE_NAMESPACE}/${mirror}`);
    },
    remove: async () => {
      if (started === null) return;
      const { path } = started;
      await host
        .perform([{ kind: 'remove-file', path }])
        .catch((error: unknown) => onIssue(`the manifest ${path} of the probe pod was not removed: ${messageOf(error)}`));
    },
  };
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
