import type { AssessedNode } from '../dynamic/workflows/read-nodes.ts';
import type { Assigner } from '../kubelet/effective/node-source.ts';
import { formatConfigSource, formatConfigStatus } from '../kubelet/layers/config-source.ts';

/** A node's dynamic configuration for machines. */
export function nodeDocument({ config, verdict }: AssessedNode): object {
  const { source } = config.source;
  return {
    node: config.name,
    backend: config.backend,
    kubeletVersion: config.kubeletVersion,
    ready: config.isReady,
    state: verdict.state,
    ...(verdict.since === null ? {} : { since: verdict.since.toISOString() }),
    ...(verdict.why === null ? {} : { why: verdict.why }),
    ...(verdict.hint === null ? {} : { hint: verdict.hint }),
    ...(source === null ? {} : { configSource: formatConfigSource(source) }),
    ...(config.assigner === null ? {} : { assignedBy: assignerDocument(config.assigner) }),
    ...(config.report === null ? {} : { activeObserved: config.report.observed, reportedAt: config.report.at }),
    ...(config.report?.trialEnds == null ? {} : { trialEnds: config.report.trialEnds }),
    ...(config.status === null ? {} : { status: formatConfigStatus(config.status) }),
  };
}

/** The author of an assignment for machines. */
export function assignerDocument({ by, at, reason }: Assigner): object {
  return { by, ...(at === null ? {} : { at: at.toISOString() }), ...(reason === null ? {} : { reason }) };
}
