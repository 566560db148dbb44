import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Host } from '../../host/host.ts';
import type { KubeObject } from '../../kube/object.ts';
import { PAYLOAD_FILE } from '../../kubeadm/node-agent/layout.ts';
import { healthzUrl } from '../../kubeadm/render/node-design.ts';
import { observeKubelet } from '../../kubeadm/workflows/observe-kubelet.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue.ts';
import { decodeKubeletConfiguration } from '../../kubelet/decode.ts';
import { readConfigz } from '../../kubelet/effective/configz.ts';
import { type ReadHostText, readHostText } from '../../kubelet/effective/running-config.ts';
import type { CheckpointStore } from '../checkpoint-store.ts';
import { assessProcess } from './assess-process.ts';
import { type ConfigzSource, ConfigzUnavailableError } from './configz-source.ts';
import type { Observation } from './health.ts';
import { inspectKubelet } from './kubelet-control.ts';
import { minorOfNode, type NodeReport, readNodeReport } from './node-word.ts';
import { onceResolved } from './once-resolved.ts';
import { expectedOf } from './prepare-assigned.ts';
import { differingFields } from './prepare-payload.ts';
import { type AgentState, desiredPayload } from './state.ts';

/** What a kubelet shows of itself: on its host, by its configz, and through its Node. */
export interface KubeletWatch {
  /** Null: the API server does not answer, what the Node said is not known any more. */
  nodeIs(node: KubeObject | null): void;
  inspect(state: AgentState): Promise<Observation>;
  /** The last look at a kubelet that is about to be switched; null: it could not be looked at. What follows is about another. */
  leave(state: AgentState): Promise<Observation | null>;
}

export interface KubeletWatchOptions {
  readonly host: Host;
  readonly nodeName: string;
  readonly store: CheckpointStore;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly configz: ConfigzSource;
  /** Told why the kubelet could not be asked what it runs. */
  readonly onIssue: (message: string) => void;
  readonly signal: AbortSignal;
}

/** Watches the kubelet of a host. */
export function kubeletWatch({ host, nodeName, store, catalogue, clock, configz, onIssue, signal }: KubeletWatchOptions): KubeletWatch {
  let node: KubeObject | null = null;
  let switchedAt = clock.now().getTime();
  /** The kubelet of before accepted the credential of the node: one that refuses it does so because of its configuration. */
  let wasAccepted = false;
  let cached: { readonly hash: string; readonly payload: ReadHostText } | null = null;
  const compared = onceResolved<readonly string[]>(clock, onIssue);
  const proven = onceResolved<true>(clock, onIssue);

  const readPayload = async (hash: string | null): Promise<ReadHostText> => {
    if (hash !== null && cached?.hash === hash) return cached.payload;
    const files = hash === null ? null : await store.readCheckpoint(hash);
    const payload = readHostText({ path: PAYLOAD_FILE, text: files?.[PAYLOAD_FILE] ?? '' });
    if (hash !== null && files !== null) cached = { hash, payload };
    return payload;
  };

  /** The fields of what it runs that are not as the payload wants them. */
  const compare = async (payload: ReadHostText): Promise<readonly string[]> => {
    const kubelet = await observeKubelet(host, catalogue, signal);
    const reader = { minor: kubelet.minor, catalogue };
    return differingFields(readConfigz(await configz.query(kubelet), nodeName, reader), expectedOf(payload, kubelet, catalogue), reader);
  };

  /** Why the process is not shown to have read that payload, as an error. */
  const prove = async (hash: string, ageMs: number | null): Promise<true> => {
    const found = await store.findCheckpoint(hash);
    const facts = { isWhole: found !== null && found.files !== null, changedAt: found?.changedAt ?? 0, ageMs, now: clock.now().getTime() };
    const why = assessProcess(facts);
    if (why !== null) throw new Error(why);
    return true;
  };

  /** Why the API server, which logs in to kubelets by a certificate of the same CA, is locked out as well; null: nothing shows that. */
  const lockOut = (differing: readonly string[] | null): string | null =>
    wasAccepted && differing === null && compared.issue?.isRefusal === true
      ? `the kubelet refuses the credential of its own node, which it accepted before: ${compared.issue.why}`
      : null;

  const unknownOf = ({ ready }: NodeReport): readonly string[] => [
    ...(proven.issue === null ? [] : [proven.issue.why]),
    ...(node === null
      ? ['the API server does not answer, or has no such Node']
      : ready === null
        ? ['the Node has not said whether it is Ready since the kubelet was restarted']
        : []),
  ];

  const inspect = async (state: AgentState): Promise<Observation> => {
    const desired = desiredPayload(state)?.hash ?? null;
    const payload = await readPayload(desired);
    const { pid, ageMs, ...seen } = await inspectKubelet(host, {
      healthzUrl: healthzUrl(configOf(payload, catalogue, minorOfNode(node))),
      restarts: state.watch.restarts,
      sinceSeconds: switchedAt / 1000,
      signal,
    });
    const isDesired = desired !== null && seen.runs === desired && pid !== null;
    const isProven = isDesired && (await proven.of(pid, () => prove(desired, ageMs))) !== null;
    const isAsked = isDesired && seen.healthz?.ok !== false && node !== null;
    const differing = isAsked ? await compared.of(pid, () => compare(payload)) : null;
    const lockedOut = isAsked ? lockOut(differing) : null;
    // What the Node said since this process was started is about it, also where the agent was started after that.
    const word = readNodeReport(node, ageMs === null ? switchedAt : clock.now().getTime() - ageMs);
    return { ...seen, ageMs, isProven, differing, ...word, lockedOut, unknown: unknownOf(word) };
  };

  /** Also where the credential may not read configz. */
  const isAccepted = (): Promise<boolean> =>
    observeKubelet(host, catalogue, signal)
      .then(configz.query)
      .then(
        () => true,
        (error: unknown) => error instanceof ConfigzUnavailableError && error.credential === 'accepted',
      );

  return {
    nodeIs: (next) => {
      node = next;
    },
    inspect,
    leave: async (state) => {
      const last = await inspect(state).catch(() => null);
      // Only a trial is judged by it: a way back must not wait for a kubelet that hangs.
      wasAccepted = state.phase === 'trial' && node !== null && (await isAccepted());
      switchedAt = clock.now().getTime();
      compared.forget();
      proven.forget();
      return last;
    },
  };
}

function configOf({ source }: ReadHostText, catalogue: Catalogue, minor: Minor): JsonObject {
  const document = source.documents[0];
  return document === undefined ? {} : decodeKubeletConfiguration(document, { minor, catalogue, lenient: true }).value;
}
