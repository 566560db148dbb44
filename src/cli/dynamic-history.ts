import type { ExitCode } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { ASSIGNED_EVENT_REASON, CONFIG_EVENT_REASON, type ConfigHistoryEntry } from '../dynamic/status/config-event.ts';
import { readNodeHistory } from '../dynamic/use-cases/node-status.ts';
import { type NodeChoice, openNodeNames } from '../fleet/use-cases/named-hosts.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import { describeIdentity, formatIdentity } from '../kubelet/layers/config-source.ts';
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
  const events = await readNodeHistory(services, { node, cluster });
  const items = events.map(({ at, reason, identity, message }) => ({
    at: at.toISOString(),
    reason,
    source: identity === null ? null : formatIdentity(identity),
    message,
  }));
  const rows = events.map((event) => [event.at.toISOString().replace('.000', ''), happened(event)]);
  const table =
    rows.length === 0 ? ['No change found: API servers delete Events after an hour by default.'] : renderTable([['AT', 'CHANGE'], ...rows]);
  const document = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'NodeConfigHistory', node, items };
  services.output.stdout(format === 'text' ? joinLines(table) : renderDocument(document, format));
  return 0;
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
