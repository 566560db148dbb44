import { parseSource } from '../core/config/source.ts';
import type { Observation } from '../core/dynamic/agent/health.ts';
import { type CheckpointFiles, PAYLOAD_FILE } from '../core/dynamic/agent/layout.ts';
import { minorOfNode, type NodeWord, readNodeWord } from '../core/dynamic/agent/node-word.ts';
import { type AgentState, wantedPayload } from '../core/dynamic/agent/state.ts';
import type { JsonObject } from '../core/json.ts';
import type { Catalogue, Minor } from '../core/kubelet/catalogue.ts';
import { decodeKubeletConfiguration } from '../core/kubelet/decode.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { healthzUrl } from '../core/render/node-design.ts';
import type { CheckpointStore } from '../engine/checkpoint-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { Host } from '../ports/host.ts';
import type { ConfigzProof } from './configz-proof.ts';
import { lookAtKubelet } from './kubelet-control.ts';
import { expectedOf } from './prepare-assigned.ts';

/** What a kubelet shows of itself: on its host, by its configz, and through its Node. */
export interface KubeletWatch {
  /** Null: the API server does not answer, what the Node said is not known any more. */
  nodeIs(node: KubeObject | null): void;
  look(state: AgentState): Promise<Observation>;
  /** The last look at a kubelet that is about to be switched; null: it could not be looked at. What follows is about another. */
  leave(state: AgentState, to: string | null): Promise<Observation | null>;
}

export interface KubeletWatchOptions {
  readonly host: Host;
  readonly store: CheckpointStore;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly configz: ConfigzProof;
  /** Whether the API server gets through to the kubelet now. */
  readonly isReached: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** Watches the kubelet of a host. */
export function kubeletWatch({ host, store, catalogue, clock, configz, isReached, signal }: KubeletWatchOptions): KubeletWatch {
  let node: KubeObject | null = null;
  let switchedAt = clock.now().getTime();
  /** The API server got through to the kubelet right before it was switched. */
  let wasReached = false;
  let cached: { readonly hash: string; readonly files: CheckpointFiles } | null = null;

  const payloadText = async (hash: string): Promise<string> => {
    const files = cached?.hash === hash ? cached.files : await store.readCheckpoint(hash);
    if (files !== null) cached = { hash, files };
    return files?.[PAYLOAD_FILE] ?? '';
  };

  const unknownOf = (differing: readonly string[] | null, { ready }: NodeWord): readonly string[] => {
    if (node === null) return ['the API server does not answer'];
    return [
      ...(differing === null && configz.trouble !== null ? [configz.trouble.why] : []),
      ...(ready === null ? ['the Node has not said whether it is Ready since the kubelet was restarted'] : []),
    ];
  };

  const look = async (state: AgentState): Promise<Observation> => {
    const wanted = wantedPayload(state)?.hash ?? null;
    const minor = minorOfNode(node);
    const text = wanted === null ? '' : await payloadText(wanted);
    const config = configOf(text, catalogue, minor);
    const { pid, ageMs, ...seen } = await lookAtKubelet(host, {
      healthzUrl: healthzUrl(config),
      restarts: state.watch.restarts,
      sinceSeconds: switchedAt / 1000,
      signal,
    });
    const runsIt = wanted !== null && seen.runs === wanted && seen.healthz?.ok !== false && pid !== null;
    const expected = (): Promise<JsonObject> => expectedOf(text, { host, catalogue, signal });
    const differing = runsIt && node !== null ? await configz.differing({ pid, minor, expected }) : null;
    // What the Node said since this process was started is about it, also where the agent was started after that.
    const word = readNodeWord(node, ageMs === null ? switchedAt : clock.now().getTime() - ageMs);
    const lockedOut = wasReached && differing === null && configz.trouble?.isAnswer === true ? configz.trouble.why : null;
    return { ...seen, differing, ...word, lockedOut, unknown: unknownOf(differing, word) };
  };

  return {
    nodeIs: (next) => {
      node = next;
    },
    look,
    leave: async (state, to) => {
      const before = await look(state).catch(() => null);
      wasReached = to !== null && node !== null && (await isReached());
      switchedAt = clock.now().getTime();
      configz.forget();
      return before;
    },
  };
}

function configOf(text: string, catalogue: Catalogue, minor: Minor): JsonObject {
  const document = parseSource(text, PAYLOAD_FILE).documents[0];
  return document === undefined ? {} : decodeKubeletConfiguration(document, { minor, catalogue, lenient: true }).value;
}
