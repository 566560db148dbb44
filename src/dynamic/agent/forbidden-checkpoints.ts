import { messageOf } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { parseHostFile } from '../../kubelet/effective/running-config.ts';
import { checkpointDirectory, PAYLOAD_FILE } from '../../kubelet/node-agent/layout.ts';
import type { AgentOptions } from './agent-options.ts';
import type { CheckpointStore } from './checkpoint-store.ts';
import { changesOf, describeForbidden, forbiddenChanges, type PayloadNode } from './payload-changes.ts';
import { payloadNodeOf } from './prepare-assigned.ts';
import { type AgentState, desiredPayload, type EventOf, type Fault } from './state.ts';

interface ForbiddenOptions extends AgentOptions {
  readonly store: Pick<CheckpointStore, 'findCheckpoint'>;
  /** Called with the reason why the checkpoints could not be checked. */
  readonly onIssue: (message: string) => void;
}

/**
 * Checks the checkpoints of a node against the policy again, once for each process of the kubelet: a kubelet that was
 * restarted may have other flags and drop-in files, and an agent that was restarted another policy.
 * @returns a function: `pid` is that of the kubelet, null at the start of the agent; null: nothing is forbidden, or
 *   the same process was checked before
 */
export function forbiddenCheckpoints(
  options: ForbiddenOptions,
): (state: AgentState, pid: number | null) => Promise<EventOf<'forbidden'> | null> {
  let checked = '';
  return async (state, pid) => {
    const hashes = new Set([desiredPayload(state)?.hash, state.lastKnownGood?.hash].flatMap((hash) => hash ?? []));
    const key = `${pid} ${[...hashes].join(' ')}`;
    if (options.allow === 'unsafe' || hashes.size === 0 || key === checked) return null;
    try {
      const payloads = await forbiddenOf([...hashes], options);
      checked = key;
      return payloads.length === 0 ? null : { kind: 'forbidden', payloads };
    } catch (error) {
      options.signal.throwIfAborted();
      options.onIssue(`cannot check whether the configuration is still permitted: ${messageOf(error)}`);
      return null;
    }
  };
}

async function forbiddenOf(hashes: readonly string[], options: ForbiddenOptions): Promise<EventOf<'forbidden'>['payloads']> {
  const { host, catalogue, localConfig, signal } = options;
  const kubelet = await observeKubelet(host, catalogue, signal);
  const localText = (await observe(host, fileFacts([localConfig]), signal)).get(localConfig)?.content ?? '';
  const node = payloadNodeOf(kubelet, options, null, localText);
  const found: { hash: string; fault: Fault }[] = [];
  for (const hash of hashes) {
    const cause = await causeOf(hash, node, options);
    if (cause !== null) found.push({ hash, fault: { code: 'NOT_ALLOWED', cause } });
  }
  return found;
}

/** Null: permitted, or a damaged checkpoint, which the agent does not use. */
async function causeOf(hash: string, node: PayloadNode, { store, allow }: ForbiddenOptions): Promise<string | null> {
  const checkpoint = await store.findCheckpoint(hash);
  const text = checkpoint?.files?.[PAYLOAD_FILE];
  if (text === undefined) return null;
  const configFile = parseHostFile({ path: `${checkpointDirectory(node.directory, hash)}/${PAYLOAD_FILE}`, text });
  const policy = { allow, isDrained: false };
  const changes = changesOf(configFile, parseHostFile(node.local), node);
  const forbidden = forbiddenChanges(changes, policy, { isProven: true, sets: checkpoint?.manifest?.sets ?? null });
  return forbidden.length === 0 ? null : `no longer permitted: ${describeForbidden(forbidden, changes, policy)}`;
}
