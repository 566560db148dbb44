import { AppError, type Problem } from '../base/errors.ts';
import { type ConfigSource, describeSource } from '../kubelet/config-source.ts';
import type { Backend, NodeConfig } from './node-config.ts';

/** The API server answered 200 and did not keep the assignment. */
export function sourceDropped(node: string, server: string, version: string): Problem {
  return {
    host: node,
    code: 'DYNAMIC_SOURCE_DROPPED',
    message: `the API server ${server} (${version}) said yes and did not keep spec.configSource: from 1.22 on that needs the feature gate DynamicKubeletConfig, and from 1.26 on there is none`,
    hint: 'Start kube-apiserver with --feature-gates=DynamicKubeletConfig=true (1.22 to 1.25), or use --backend agent',
  };
}

/** Nobody on the node would read what it is assigned. */
export function notEnabled(node: string, backend: Backend, kubeletVersion: string): Problem {
  const kubelet = kubeletVersion === '' ? 'its kubelet' : `its kubelet ${kubeletVersion}`;
  const [message, hint] =
    backend === 'agent'
      ? [`no agent has reported from this node`, 'Install it with dynamic enable and the host']
      : [
          `${kubelet} has never reported a configuration: it runs without --dynamic-config-dir, or the API server drops the field`,
          'Run dynamic enable with its host, which gives the kubelet --dynamic-config-dir and, from 1.22 on, the gate; --force assigns all the same',
        ];
  return { host: node, code: 'DYNAMIC_NOT_ENABLED', message, hint };
}

/** The agent of a node may not read what the node is to be assigned. */
export function otherNamespace(node: string, source: ConfigSource, namespace: string): Problem {
  return {
    host: node,
    code: 'AGENT_NAMESPACE_OTHER',
    message: `its agent may read ConfigMaps of namespace ${namespace} only, not ${describeSource(source)}`,
    hint: `Push the configuration there: dynamic push FILE --namespace ${namespace}`,
  };
}

/** A Node that is not there. */
export function noSuchNode(node: string, server: string): Problem {
  return { host: node, code: 'NODE_NOT_FOUND', message: `${server} has no such Node`, hint: 'kubectl get nodes lists them' };
}

/** What is to be assigned does not exist: the kubelet would report a download error, or fall back. */
export function noSuchPayload(source: ConfigSource, keys: readonly string[] | null): AppError {
  const message =
    keys === null
      ? `there is no ConfigMap ${source.namespace}/${source.name}`
      : `ConfigMap ${source.namespace}/${source.name} has no key ${source.kubeletConfigKey}, only ${keys.join(', ') || 'none'}`;
  const hint = keys === null ? 'dynamic push makes one of a file' : 'Name the key behind the second slash';
  return new AppError(
    { code: 'DYNAMIC_NO_PAYLOAD', message: `${message}: ${describeSource(source)} cannot be assigned`, hint },
    { exitCode: 2 },
  );
}

/** A ConfigMap of that name holds something else, and nodes that use it would all restart at once. */
export function payloadDiffers(where: string, users: readonly string[], immutable: boolean): AppError {
  const used =
    users.length === 0
      ? 'no node uses it'
      : `${users.length === 1 ? 'node' : 'nodes'} ${users.join(', ')} would restart within seconds, all at once`;
  const message = `ConfigMap ${where} exists with other content: ${immutable ? 'it is immutable' : used}`;
  const hint = immutable
    ? 'Push under another --name'
    : 'Push with --append-hash, which makes a new name for new content, or change it with --in-place';
  return new AppError({ code: 'DYNAMIC_PAYLOAD_DIFFERS', message, hint }, { exitCode: 2 });
}

/** Somebody else assigned the node something during a rollout. @param config the Node as it is now */
export function assignmentReplaced({ name, source, assigner }: NodeConfig, desired: ConfigSource | null): Problem {
  const [now, expected] = [source.source, desired].map((one) => (one === null ? 'the local configuration' : describeSource(one)));
  const by = assigner === null ? 'by an unknown client' : `by ${assigner.by}`;
  const at = assigner?.at == null ? '' : ` at ${assigner.at.toISOString().replace('.000', '')}`;
  return {
    host: name,
    code: 'ASSIGNMENT_REPLACED',
    message: `replaced: assigned ${now} ${by}${at}, in place of ${expected}: left as it is`,
    hint: 'Agree on one assignment with that operator, then run the command again',
  };
}

/** The previous assignments of nodes can't be recorded in the cluster. */
export function rolloutNotRecorded(why: string): Problem {
  return {
    code: 'ROLLOUT_NOT_RECORDED',
    message: `the previous assignments cannot be recorded in the cluster: ${why}`,
    hint: 'A later run with --on-failure revert restores only nodes that it assigns itself; allow ConfigMaps to be written in kubeletadm-system',
  };
}

/** A node failed, and others were left as they are. */
export function rolloutStopped(left: number, failed: readonly string[]): Problem {
  return {
    code: 'ROLLOUT_STOPPED',
    message: `rollout stopped: ${failed.slice(0, 5).join(', ')}${failed.length > 5 ? ', …' : ''} failed, ${notStarted(left)}`,
    hint: 'Fix the cause and rerun the command, or assign another ConfigMap',
  };
}

/** As many nodes are down already as may be. */
export function rolloutBlocked(left: number, down: readonly string[]): Problem {
  const names = `${down.slice(0, 5).join(', ')}${down.length > 5 ? ', …' : ''}`;
  return {
    code: 'ROLLOUT_BLOCKED',
    message: `rollout stopped: ${names} ${down.length === 1 ? 'is' : 'are'} down, ${notStarted(left)}: --max-unavailable allows no more`,
    hint: 'Repair the nodes that are down, run the command for them alone first, or raise --max-unavailable',
  };
}

function notStarted(nodes: number): string {
  return `${nodes} ${nodes === 1 ? 'node' : 'nodes'} not started`;
}
