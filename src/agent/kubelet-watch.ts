import { parseSource } from '../core/config/source.ts';
import type { Observation } from '../core/dynamic/agent/health.ts';
import { type CheckpointFiles, PAYLOAD_FILE } from '../core/dynamic/agent/layout.ts';
import { minorOfNode, type NodeWord, readNodeWord } from '../core/dynamic/agent/node-word.ts';
import { differingFields } from '../core/dynamic/agent/prepare-payload.ts';
import { type AgentState, wantedPayload } from '../core/dynamic/agent/state.ts';
import type { JsonObject } from '../core/json.ts';
import type { Catalogue, Minor } from '../core/kubelet/catalogue.ts';
import { decodeKubeletConfiguration } from '../core/kubelet/decode.ts';
import { readConfigz } from '../core/kubelet/effective/configz.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { healthzUrl } from '../core/render/node-design.ts';
import type { CheckpointStore } from '../engine/checkpoint-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { Host } from '../ports/host.ts';
import { observeKubelet } from '../workflows/observe-kubelet.ts';
import { askUntilTold } from './ask-until-told.ts';
import type { ConfigzSource } from './configz-source.ts';
import { lookAtKubelet } from './kubelet-control.ts';
import { expectedOf } from './prepare-assigned.ts';

/** What a kubelet shows of itself: on its host, by its configz, and through its Node. */
export interface KubeletWatch {
  /** Null: the API server does not answer, what the Node said is not known any more. */
  nodeIs(node: KubeObject | null): void;
  look(state: AgentState): Promise<Observation>;
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
  readonly onTrouble: (message: string) => void;
  readonly signal: AbortSignal;
}

/** Watches the kubelet of a host. */
export function kubeletWatch({ host, nodeName, store, catalogue, clock, configz, onTrouble, signal }: KubeletWatchOptions): KubeletWatch {
  let node: KubeObject | null = null;
  let switchedAt = clock.now().getTime();
  /** What the kubelet of before was asked with success: that now fails for what the new one does. */
  let before = { told: false, reached: false };
  let cached: { readonly hash: string; readonly files: CheckpointFiles } | null = null;
  const compared = askUntilTold<readonly string[]>(clock, onTrouble);
  const reached = askUntilTold<JsonObject>(clock, onTrouble);

  const payloadText = async (hash: string): Promise<string> => {
    const files = cached?.hash === hash ? cached.files : await store.readCheckpoint(hash);
    if (files !== null) cached = { hash, files };
    return files?.[PAYLOAD_FILE] ?? '';
  };

  /** The fields of what it runs that are not as the payload wants them. */
  const compare = async (text: string): Promise<readonly string[]> => {
    const kubelet = await observeKubelet(host, catalogue, signal);
    const reader = { minor: kubelet.minor, catalogue };
    return differingFields(readConfigz(await configz.ask(kubelet), nodeName, reader), expectedOf(text, kubelet, catalogue), reader);
  };

  /** Why the kubelet can't be got through to any more; null: nothing says so. */
  const lockOut = async (pid: number, differing: readonly string[] | null): Promise<string | null> => {
    if (before.reached && (await reached.of(pid, configz.askThroughApiServer)) === null && reached.trouble?.isAnswer === true)
      return `the API server does not get through to the kubelet any more: ${reached.trouble.why}`;
    return before.told && differing === null && compared.trouble?.isAnswer === true
      ? `the kubelet does not tell its configuration any more: ${compared.trouble.why}`
      : null;
  };

  const unknownOf = (differing: readonly string[] | null, { ready }: NodeWord): readonly string[] => {
    if (node === null) return ['the API server does not answer'];
    return [
      ...(differing === null && compared.trouble !== null ? [`configz can't be read: ${compared.trouble.why}`] : []),
      ...(ready === null ? ['the Node has not said whether it is Ready since the kubelet was restarted'] : []),
    ];
  };

  const look = async (state: AgentState): Promise<Observation> => {
    const wanted = wantedPayload(state)?.hash ?? null;
    const text = wanted === null ? '' : await payloadText(wanted);
    const { pid, ageMs, ...seen } = await lookAtKubelet(host, {
      healthzUrl: healthzUrl(configOf(text, catalogue, minorOfNode(node))),
      restarts: state.watch.restarts,
      sinceSeconds: switchedAt / 1000,
      signal,
    });
    const isAsked = wanted !== null && seen.runs === wanted && seen.healthz?.ok !== false && pid !== null && node !== null;
    const differing = isAsked ? await compared.of(pid, () => compare(text)) : null;
    const lockedOut = isAsked ? await lockOut(pid, differing) : null;
    // What the Node said since this process was started is about it, also where the agent was started after that.
    const word = readNodeWord(node, ageMs === null ? switchedAt : clock.now().getTime() - ageMs);
    return { ...seen, ageMs, differing, ...word, lockedOut, unknown: unknownOf(differing, word) };
  };

  const isTold = (asking: Promise<unknown>): Promise<boolean> =>
    asking.then(
      () => true,
      () => false,
    );

  return {
    nodeIs: (next) => {
      node = next;
    },
    look,
    leave: async (state) => {
      const last = await look(state).catch(() => null);
      // Only a trial is judged by it: a way back must not wait for a kubelet that hangs.
      const isJudged = state.phase === 'trial' && node !== null;
      before = {
        told: isJudged && (await isTold(observeKubelet(host, catalogue, signal).then(configz.ask))),
        reached: isJudged && (await isTold(configz.askThroughApiServer())),
      };
      switchedAt = clock.now().getTime();
      compared.forget();
      reached.forget();
      return last;
    },
  };
}

function configOf(text: string, catalogue: Catalogue, minor: Minor): JsonObject {
  const document = parseSource(text, PAYLOAD_FILE).documents[0];
  return document === undefined ? {} : decodeKubeletConfiguration(document, { minor, catalogue, lenient: true }).value;
}
