import { onAbort } from '../../base/abort.ts';
import { isAppError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';
import { nodeEvent } from '../../kube/node-event.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import {
  CONFIG_REPORT_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  formatConfigStatus,
  parseStatusAnnotation,
} from '../../kubelet/layers/config-source.ts';
import type { AgentOptions } from './agent-options.ts';
import { formatReport, nextReport, parseReport } from './config-report.ts';

import { type AgentState, type EffectOf, isObserved } from './state.ts';
import { agentConditionOf, CONFIG_CONDITION, configStatusOf, trialEndOf } from './status.ts';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;
const FINAL_REFUSALS = ['CLUSTER_ALREADY_EXISTS', 'CLUSTER_FORBIDDEN', 'CLUSTER_INVALID'] as const;
/** Limit of queued Events during a long outage: the oldest are dropped, because the status has the current state. */
const MOST_WAITING = 50;

/**
 * Reports an agent's state to the cluster: the condition `KubeletConfigOk`, the annotation in the form of
 * `status.config`, and Events. Unchanged parts are not sent again. Failed requests are retried with
 * increasing, jittered delays.
 */
export function statusReporter(options: Pick<AgentOptions, 'cluster' | 'nodeName' | 'clock' | 'random' | 'timing' | 'signersFile'>) {
  const { cluster, nodeName, clock } = options;
  const ref: ObjectRef = { apiVersion: 'v1', kind: 'Node', name: nodeName };
  let state: AgentState | null = null;
  let node: KubeObject | null = null;
  let waiting: { readonly announcement: EffectOf<'announce'>; readonly at: Date; readonly serial: number }[] = [];
  let serial = 0;
  let wake: () => void = () => undefined;
  let dirty = false;
  /** Ends the delay after a failure: the API server responds again. */
  let received = new AbortController();
  const touch = (): void => {
    dirty = true;
    wake();
  };
  const patches = (): ReturnType<typeof patchesFor> =>
    node === null || state === null ? [] : patchesFor(node, state, clock.now(), options);

  const deliver = async (): Promise<void> => {
    for (const { subresource, patch } of patches())
      node = await cluster.patch(ref, subresource === undefined ? 'merge' : 'strategic', patch, { subresource });
    const [first] = waiting;
    if (first === undefined) return;
    const { type, reason, message } = first.announcement;
    const event = nodeEvent(nodeName, { type, reason, message, component: 'kubeletadm-agent' }, first.at, first.serial);
    await cluster.create(event).catch((error: unknown) => {
      // A retry would get the same answer.
      if (!FINAL_REFUSALS.some((code) => isAppError(error, code))) throw error;
    });
    waiting = waiting.filter((one) => one !== first);
  };

  return {
    /** Whether all reports were delivered. */
    get isDelivered(): boolean {
      return waiting.length === 0 && patches().length === 0;
    },
    /** Sets the state to report. */
    stateIs: (next: AgentState): void => {
      state = next;
      touch();
    },
    /** The Node at the API server; null: it does not exist, or is not known. */
    nodeIs: (next: KubeObject | null): void => {
      node = next;
      if (next !== null) received.abort();
      touch();
    },
    announce: (announcement: EffectOf<'announce'>): void => {
      waiting = [...waiting, { announcement, at: clock.now(), serial: serial++ }].slice(-MOST_WAITING);
      touch();
    },
    /** Sends reports and retries failed ones until the signal is aborted. */
    run: async (signal: AbortSignal): Promise<void> => {
      for (let failures = 0; !signal.aborted; ) {
        dirty = false;
        failures = await deliver().then(
          () => 0,
          () => failures + 1,
        );
        if (signal.aborted) return;
        if (failures > 0) {
          received = new AbortController();
          await delayAfter(failures, { ...options, signal }, received);
        } else if (!dirty && waiting.length === 0) await nextTouch(signal, (resolve) => (wake = resolve));
      }
    },
  };
}

/** The delay after failed requests, which `received` ends. */
async function delayAfter(
  failures: number,
  { clock, random, signal }: Pick<AgentOptions, 'clock' | 'random' | 'signal'>,
  received: AbortController,
): Promise<void> {
  const delayMs = Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 10), LONGEST_DELAY_MS) * (0.5 + random());
  const removeListener = onAbort(signal, (reason) => received.abort(reason));
  await clock.sleep(delayMs, received.signal).catch(() => undefined);
  removeListener();
}

async function nextTouch(signal: AbortSignal, onWake: (resolve: () => void) => void): Promise<void> {
  let done: () => void = () => undefined;
  const woken = new Promise<void>((resolve) => {
    done = resolve;
    onWake(resolve);
  });
  signal.addEventListener('abort', done, { once: true });
  await woken;
  signal.removeEventListener('abort', done);
}

/**
 * The requests that update the Node; empty if it is up to date. The condition is written first, then the
 * annotations, which repeat the condition that belongs to them, so that a reader can detect the state between
 * the two requests.
 * @returns without `subresource`: for the Node itself
 */
export function patchesFor(
  node: KubeObject,
  state: AgentState,
  now: Date,
  { timing, signersFile }: Pick<AgentOptions, 'timing' | 'signersFile'>,
): readonly { readonly subresource?: string; readonly patch: JsonObject }[] {
  const status = configStatusOf(state);
  const text = JSON.stringify(formatConfigStatus(status));
  const condition = agentConditionOf(state);
  const conditions = isJsonObject(node.status) && Array.isArray(node.status.conditions) ? node.status.conditions.filter(isJsonObject) : [];
  const found = conditions.find(({ type }) => type === CONFIG_CONDITION);
  const isSame = found?.status === condition.status && found.reason === condition.reason && found.message === condition.message;
  const time = formatRfc3339(now);
  const lastTransitionTime = found?.status === condition.status ? (found.lastTransitionTime ?? time) : time;
  const written = { type: CONFIG_CONDITION, ...condition, lastHeartbeatTime: time, lastTransitionTime };
  const { annotations = {} } = node.metadata;
  const errorBefore = parseStatusAnnotation(annotations[CONFIG_STATUS_ANNOTATION])?.error ?? null;
  const before = parseReport(annotations[CONFIG_REPORT_ANNOTATION]);
  const end = trialEndOf(state, timing.trialMs);
  const next = nextReport(before, {
    condition,
    observed: isObserved(state),
    error: status.error,
    errorBefore,
    trialEnds: end === null ? null : formatRfc3339(new Date(end)),
    requiresSignature: signersFile !== null,
    at: time,
  });
  const desired = { [CONFIG_STATUS_ANNOTATION]: text, [CONFIG_REPORT_ANNOTATION]: formatReport(next) };
  const isAnnotated = Object.entries(desired).every(([name, value]) => annotations[name] === value);
  return [
    ...(isSame ? [] : [{ subresource: 'status', patch: { status: { conditions: [written] } } }]),
    ...(isAnnotated ? [] : [{ patch: { metadata: { annotations: desired } } }]),
  ];
}
