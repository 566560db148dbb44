import { AppError, type Problem } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import type { Reporter } from '../../base/reporter.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type ConfigSource, describeSource, sameSource } from '../../kubelet/layers/config-source.ts';
import { describeAssignment, type RecordedAssignment } from '../status/assignment-history.ts';
import { decideNodeUndos, describeUndo, type NodeUndo } from '../status/decide-undo.ts';
import type { NodeConfig } from '../status/node-config.ts';
import { contentHash } from '../workflows/config-contents.ts';
import { PUSHED_LABEL } from '../workflows/push-config.ts';
import { type Assignment, type AssignmentRequest, checkAssignment } from './assign.ts';
import type { CheckedPayload } from './check-pod-risks.ts';
import type { PushFilePorts } from './push-file.ts';

/**
 * Prepares the return of nodes to earlier assignments. The record on a Node may be forged by the node, so that it decides
 * only between the local configuration and ConfigMaps that `dynamic push` created for nodes; the content must be
 * that of the record.
 * @param to as of `decideNodeUndos`
 * @throws AppError UNDO_NOTHING, UNDO_MOVED, UNDO_NOT_POSSIBLE, UNDO_UNKNOWN_ID, DYNAMIC_SIGNATURE_REQUIRED (exit code 3) for
 *   each node; the errors of `checkAssignment`
 */
export async function checkUndo(
  ports: PushFilePorts,
  cluster: Cluster,
  { to, rollout, allowPodLoss }: Pick<AssignmentRequest, 'rollout' | 'allowPodLoss'> & { readonly to: string | undefined },
  { nodes, reporter, drains }: { readonly nodes: readonly NodeConfig[]; readonly reporter: Reporter } & Pick<CheckedPayload, 'drains'>,
): Promise<Assignment> {
  const { undos, problems } = decideNodeUndos(nodes, to);
  const changed = undos.filter(({ undone }) => undone.length > 0);
  const groups = [...groupBy(changed, ({ target }) => describeAssignment(target.source)).values()];
  for (const group of groups) problems.push(...(await recordIssues(cluster, group)));
  if (problems.length > 0) throw new AppError(problems, { exitCode: 3 });
  reportUndone(changed, reporter);
  const checked: Assignment[] = [];
  for (const group of groups) {
    const source = group[0]?.target.source ?? null;
    const validation = { kubernetesVersion: undefined, skipValidation: false };
    const assigned = source === null ? null : ({ kind: 'config-map', source, validation } as const);
    const members = group.map(({ node }) => node);
    const given = { rollout, allowPodLoss, force: source === null, assigned };
    checked.push(await checkAssignment(ports, cluster, given, { nodes: members, text: null, reporter, drains }));
  }
  return {
    nodes,
    targets: new Map(undos.map(({ node: { name, source }, target }) => [name, { name, desired: target.source, expected: source.source }])),
    push: null,
    fields: new Map(checked.flatMap(({ fields }) => [...fields])),
    // The namespace is from the record: no agent gets the right to read another one because of it.
    rights: new Map(checked.flatMap(({ rights }, i) => (groups[i]?.[0]?.target.source?.namespace === AGENT_NAMESPACE ? [...rights] : []))),
    contents: new Map(checked.flatMap(({ contents }) => [...contents])),
  };
}

/** Reports once what the undo reverts on nodes that the same runs have changed. */
function reportUndone(undos: readonly NodeUndo[], reporter: Reporter): void {
  const same = groupBy(undos, ({ undone, target }) => [describeAssignment(target.source), ...undone.map(({ id }) => id)].join(' '));
  for (const of of same.values()) {
    const names = namesText(of.map(({ node }) => node.name));
    const [message = ''] = of.map(describeUndo);
    reporter.report({ level: 'info', code: 'UNDO_CHANGE', message: `${names}: ${message}` });
  }
}

/** The reasons why nodes cannot return to one ConfigMap; none for the local configuration. */
async function recordIssues(cluster: Cluster, group: readonly NodeUndo[]): Promise<readonly Problem[]> {
  const source = group[0]?.target.source ?? null;
  if (source === null) return [];
  const { namespace, name } = source;
  const object = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name });
  const isPushed = object?.metadata.labels?.[PUSHED_LABEL] !== undefined;
  const content = object === null ? null : { isPushed, sha256: contentHash(object) };
  return group.flatMap(({ node, target }) => issueOf(node, { source, sha256: target.sha256 }, content) ?? []);
}

function issueOf(
  { name: host, report, status }: NodeConfig,
  { source, sha256 }: { readonly source: ConfigSource } & Pick<RecordedAssignment, 'sha256'>,
  content: { readonly isPushed: boolean; readonly sha256: string } | null,
): Problem | null {
  const what = `ConfigMap ${describeSource(source)}`;
  const code = 'UNDO_NOT_POSSIBLE';
  if (content === null) {
    const hint = `Assign the file of the configuration again: kubeletadm dynamic assign ${host} --file FILE`;
    return { host, code, message: `${what}, the earlier assignment, does not exist any more`, hint };
  }
  const assign = `kubeletadm dynamic assign ${host} --configmap ${describeSource(source)}`;
  if (!content.isPushed) {
    const message = `${what}, the earlier assignment, was not created by kubeletadm dynamic push or dynamic assign --file: undo does not assign it, because the node itself could have written the record that names it`;
    return { host, code, message, hint: `To assign it nevertheless: ${assign}` };
  }
  if (content.sha256 !== sha256) {
    const message = `${what}, the earlier assignment, ${sha256 === null ? 'had a content that was not recorded' : 'has another content since then'}`;
    return { host, code, message, hint: `Check its content; to assign it as it is now: ${assign}` };
  }
  // A node accepts an older revision only of the configuration that it runs, for example after a rollback.
  if (report?.requiresSignature !== true || sameSource(status?.active ?? null, source)) return null;
  const message = `the node accepts only signed ConfigMaps, and refuses the older revision of ${what}`;
  const hint = `Sign the earlier content again: kubeletadm dynamic assign ${host} --file FILE --sign KEY`;
  return { host, code: 'DYNAMIC_SIGNATURE_REQUIRED', message, hint };
}
