import { AppError, type Problem } from '../../base/errors.ts';
import { SIGNALS } from '../../kubelet/health/signals.ts';
import { type ConfigSource, describeSource } from '../../kubelet/layers/config-source.ts';
import type { PodRisk } from '../../kubelet/workload/pod-risk.ts';
import { describeRisk, hintOfRisks } from '../../kubelet/workload/pod-risks.ts';
import { describeAssignment } from './assignment-history.ts';
import type { Backend, NodeConfig } from './node-config.ts';

/** The API server answered 200 but dropped the assignment. */
export function configSourceDropped(node: string, server: string, version: string): Problem {
  return {
    host: node,
    code: 'DYNAMIC_SOURCE_DROPPED',
    message: `the API server ${server} (${version}) accepted the assignment, but dropped the field spec.configSource of the Node. API servers 1.22 to 1.25 keep the field only with the feature gate DynamicKubeletConfig; later versions do not have the field`,
    hint: 'Use --backend agent, or (1.22 to 1.25) start kube-apiserver with --feature-gates=DynamicKubeletConfig=true',
  };
}

/** The API server reached the kubelet before an assignment, and no longer reaches it. @param issue clause */
export function kubeletNotReached(node: string, issue: string): Problem {
  return {
    host: node,
    code: 'DYNAMIC_KUBELET_NOT_REACHED',
    message: SIGNALS['not-reached'].message(issue),
    hint: 'Restore the previous assignment: kubeletadm dynamic undo NODE',
  };
}

/** No kubelet or agent on the node reads the assignment. */
export function notEnabled(node: string, backend: Backend, kubeletVersion: string): Problem {
  const kubelet = kubeletVersion === '' ? 'the kubelet' : `kubelet ${kubeletVersion}`;
  const [message, hint] =
    backend === 'agent'
      ? ['no agent has reported for this node', 'Install the agent: kubeletadm dynamic enable HOST']
      : [
          `${kubelet} has never reported a configuration: the kubelet runs without --dynamic-config-dir, or the API server drops spec.configSource`,
          'Enable dynamic configuration on the kubelet: kubeletadm dynamic enable HOST. To assign without this check, add --force',
        ];
  return { host: node, code: 'DYNAMIC_NOT_ENABLED', message, hint };
}

export function otherNamespace(node: string, source: ConfigSource, namespace: string): Problem {
  return {
    host: node,
    code: 'AGENT_NAMESPACE_OTHER',
    message: `ConfigMap ${describeSource(source)} cannot be assigned: the agent of the node may read only ConfigMaps of namespace ${namespace}`,
    hint: `Push the configuration to that namespace: kubeletadm dynamic push FILE --namespace ${namespace}`,
  };
}

/** The RBAC rules of an agent do not exist, for example because its Node was deleted. @param why clause */
export function agentRightsMissing(node: string, why: string): Problem & { readonly hint: string } {
  return {
    host: node,
    code: 'AGENT_RIGHTS_MISSING',
    message: `the agent of the node needs RBAC rules to read its ConfigMap, and ${why}`,
    hint: 'Create the rules with an administrator kubeconfig: kubeletadm dynamic enable HOST',
  };
}

/** The agent of a node accepts only signed ConfigMaps. @param issue problem of the signature, as a clause */
export function signatureRequired(node: string, issue: string): Problem {
  return {
    host: node,
    code: 'DYNAMIC_SIGNATURE_REQUIRED',
    message: `the node accepts only signed ConfigMaps, but ${issue}`,
    hint: 'Sign the configuration for this node: pass --sign KEY together with --file, or to dynamic push',
  };
}

/** `--on-failure revert` would restore revisions that the nodes refuse. */
export function revertNotSigned(nodes: readonly string[]): Problem {
  return {
    code: 'DYNAMIC_SIGNATURE_REQUIRED',
    message: `--on-failure revert is not possible for ${nodes.slice(0, 5).join(', ')}${nodes.length > 5 ? ` and ${nodes.length - 5} more nodes` : ''}: these nodes require signatures, and refuse the older revision of their previous configuration`,
    hint: 'Use --on-failure stop. A node whose trial fails rolls back in any case. To return to an earlier content, sign it again with a new revision',
  };
}

/** The kubelet of a node could not start with a payload. @param isCertain the local configuration cannot permit it */
export function payloadRefused(
  node: string,
  { code, cause }: { readonly code: string; readonly cause: string },
  isCertain: boolean,
): Problem {
  return {
    host: node,
    code,
    message: isCertain
      ? `the node would refuse the configuration: ${cause}`
      : `with its present configuration, the node would refuse this one: ${cause}`,
    hint: 'Correct the field, or assign the configuration anyway with --skip-validation: the agent then decides with the configuration of the host',
  };
}

export function noSuchNode(node: string, server: string): Problem {
  return {
    host: node,
    code: 'NODE_NOT_FOUND',
    message: `the API server ${server} has no Node of this name`,
    // `user@address` is how commands for hosts name a host.
    hint: `${node.includes('@') ? 'The command takes names of Nodes, not addresses of hosts. ' : ''}List the nodes: kubectl get nodes`,
  };
}

/** The ConfigMap or its key does not exist; the kubelet would report a download error or roll back. */
export function noSuchPayload(source: ConfigSource, keys: readonly string[] | null): AppError {
  const message =
    keys === null
      ? 'the ConfigMap does not exist'
      : `the ConfigMap has no key ${source.kubeletConfigKey}; its keys are ${keys.join(', ') || '(none)'}`;
  const hint =
    keys === null
      ? 'Create the ConfigMap from a file: kubeletadm dynamic push FILE'
      : `Pass an existing key: --configmap ${source.namespace}/${source.name}/KEY`;
  return new AppError(
    { code: 'DYNAMIC_NO_PAYLOAD', message: `ConfigMap ${describeSource(source)} cannot be assigned: ${message}`, hint },
    { exitCode: 2 },
  );
}

/** A ConfigMap of that name has other content, and every node that uses it would restart at the same time. */
export function payloadDiffers(where: string, users: readonly string[], immutable: boolean): AppError {
  const used =
    users.length === 0
      ? ''
      : `. Replacing the content would restart the ${users.length === 1 ? 'kubelet' : 'kubelets'} of ${users.join(', ')} within seconds`;
  const message = `ConfigMap ${where} already exists with other content${immutable ? ' and is immutable' : used}`;
  const hint = immutable
    ? 'Push the file with another --name'
    : 'Push the file under a new name with --append-hash, or replace the content with --in-place';
  return new AppError({ code: 'DYNAMIC_PAYLOAD_DIFFERS', message, hint }, { exitCode: 2 });
}

/** Another operator changed the assignment during a rollout. @param config the Node as it is now */
export function assignmentReplaced(node: NodeConfig, desired: ConfigSource | null): Problem {
  return {
    host: node.name,
    code: 'ASSIGNMENT_REPLACED',
    message: `${assignedText(node)}, but this command expected ${describeAssignment(desired)}. The assignment was not changed`,
    hint: 'Agree with the other operator on one ConfigMap. To assign your ConfigMap, rerun the command',
  };
}

/** `kube-system/my-config/kubelet was assigned by alice@laptop (OPS-1) at 2026-03-01T12:00:00Z`. */
export function assignedText({ source, assigner }: NodeConfig): string {
  const why = assigner?.reason == null ? '' : ` (${assigner.reason})`;
  const by = assigner === null ? 'by an unknown client' : `by ${assigner.by}${why}`;
  const at = assigner?.at == null ? '' : ` at ${assigner.at.toISOString().replace('.000', '')}`;
  return `${describeAssignment(source.source)} was assigned ${by}${at}`;
}

export function rolloutNotRecorded(why: string): Problem {
  return {
    code: 'ROLLOUT_NOT_RECORDED',
    message: `cannot record the previous assignments of the nodes in the cluster: ${why}`,
    hint: 'Allow the user of the kubeconfig to write ConfigMaps in namespace kubeletadm-system. Without this record, a later run with --on-failure revert cannot restore the nodes of this run',
  };
}

export function rolloutStopped(left: number, failed: readonly string[]): Problem {
  return {
    code: 'ROLLOUT_STOPPED',
    message: `rollout stopped: ${firstNames(failed)} failed; ${notChanged(left)}`,
    hint: 'Fix the cause and rerun the command, assign another ConfigMap, or allow more failures with --max-fail',
  };
}

/** The problem of a gate or window, with the number of nodes that were not changed. */
export function withUnchanged(problem: Problem, left: number): Problem {
  return left === 0 ? problem : { ...problem, message: `${problem.message}; ${notChanged(left)}` };
}

/** The number of unavailable nodes already equals the maximum. */
export function rolloutBlocked(left: number, down: readonly string[]): Problem {
  return {
    code: 'ROLLOUT_BLOCKED',
    message: `rollout stopped: ${firstNames(down)} ${down.length === 1 ? 'is' : 'are'} down, and --max-unavailable allows no more unavailable nodes; ${notChanged(left)}`,
    hint: 'Repair the nodes that are down, or raise --max-unavailable. If the new configuration repairs these nodes, assign it to them first',
  };
}

export function podsAtRisk(node: string, risks: readonly PodRisk[], severity: PodRisk['severity']): Problem {
  return {
    host: node,
    code: 'PODS_AT_RISK',
    message: risks.map(describeRisk).join('; '),
    ...(severity === 'loss' ? { hint: hintOfRisks(risks) } : {}),
  };
}

/** `n1, n2 and n3`; the first five of more names. */
function firstNames(names: readonly string[]): string {
  const shown = names.length > 5 ? [...names.slice(0, 5), `${names.length - 5} more`] : names;
  return shown.length > 1 ? `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}` : (shown[0] ?? '');
}

function notChanged(nodes: number): string {
  return nodes === 1 ? '1 node was not changed' : `${nodes} nodes were not changed`;
}
