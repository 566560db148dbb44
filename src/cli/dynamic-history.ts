import type { ExitCode } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { ASSIGNED_EVENT_REASON, CONFIG_EVENT_REASON, type ConfigHistoryEntry } from '../dynamic/status/config-event.ts';
import { readNodeHistory } from '../dynamic/use-cases/node-status.ts';
import { assignmentMessage } from '../dynamic/workflows/assign-config.ts';
import { type NodeChoice, openNodeNames } from '../fleet/use-cases/named-hosts.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import { describeIdentity, describeSource, formatIdentity } from '../kubelet/layers/config-source.ts';
import type { Services } from './output/services.ts';
import { type ReadFormat, renderDocument } from './output/show-document.ts';

export interface DynamicHistoryRequest {
  /** One node. */
  readonly choice: NodeChoice;
  readonly cluster: KubeconfigRequest;
  readonly format: ReadFormat;
}

/** `dynamic history NODE`: oldest first. */
export async function runDynamicHistory(services: Services, request: DynamicHistoryRequest): Promise<ExitCode> {
  const { choice, cluster, format } = request;
  const [node = ''] = await openNodeNames(services, cluster, choice);
  const items = historyOf(await readNodeHistory(services, { node, cluster }));
  const rows = items.map(({ at, run, shown }) => [`${at.slice(0, 19)}Z`, run?.slice(0, 8) ?? '-', shown]);
  const none = 'No change found: no assignment is recorded on the Node, and API servers delete Events after an hour by default.';
  const table = rows.length === 0 ? [none] : renderTable([['AT', 'RUN', 'CHANGE'], ...rows]);
  const document = {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'NodeConfigHistory',
    node,
    items: items.map(({ shown: _, ...item }) => item),
  };
  services.output.stdout(format === 'text' ? joinLines(table) : renderDocument(document, format));
  return 0;
}

/** Events and recorded assignments, the oldest first. The Event of a recorded assignment is omitted. */
function historyOf({ events, assignments }: Awaited<ReturnType<typeof readNodeHistory>>) {
  const recorded = assignments.map(({ id, at, by, reason, command, undoes, from, to }) => {
    const message = assignmentMessage(to.source, { by, reason });
    const shown = `${message}${command === 'undo' ? `: undo${undoes === undefined ? '' : ` of ${undoes.slice(0, 8)}`}` : ''}`;
    const [before, after] = [from, to].map(({ source }) => (source === null ? 'local' : describeSource(source)));
    return { at, reason: ASSIGNED_EVENT_REASON, source: null, message, run: id, command, from: before, to: after, shown };
  });
  const isRecorded = ({ reason, message, at }: ConfigHistoryEntry): boolean =>
    reason === ASSIGNED_EVENT_REASON &&
    recorded.some((one) => one.message === message && Math.abs(Date.parse(one.at) - at.getTime()) < 2000);
  const others = events.flatMap((event) => {
    if (isRecorded(event)) return [];
    const { at, reason, identity, message } = event;
    const source = identity === null ? null : formatIdentity(identity);
    return [{ at: at.toISOString(), reason, source, message, run: undefined, shown: happened(event) }];
  });
  return [...recorded, ...others].toSorted((a, b) => a.at.localeCompare(b.at));
}

const WORDS: Readonly<Record<string, string>> = {
  KubeletConfigGood: 'good',
  KubeletConfigRejected: 'rejected',
  KubeletConfigUnavailable: 'unavailable',
  KubeletConfigAssignmentLost: 'assignment lost',
};

/** Events whose message is a sentence that names the change. */
const SENTENCES: readonly string[] = [ASSIGNED_EVENT_REASON, 'KubeletConfigFallenBack'];

/** The text of an Event. Events of the agent describe more than the change. */
function happened({ reason, identity, message }: ConfigHistoryEntry): string {
  if (SENTENCES.includes(reason)) return message;
  const word = WORDS[reason];
  if (word !== undefined || reason !== CONFIG_EVENT_REASON) return `${word ?? reason}: ${message}`;
  return `changed to ${identity === null ? 'the local configuration' : describeIdentity(identity)}`;
}
