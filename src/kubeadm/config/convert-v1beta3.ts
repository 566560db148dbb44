import type { Arg } from '../../base/arg.ts';
import { formatFieldPath } from '../../codec/field-path.ts';
import type {
  ClusterConfiguration,
  ControlPlaneComponent,
  DurationText,
  InitConfiguration,
  JoinConfiguration,
  LocalEtcd,
  NodeRegistration,
  Timeouts,
} from './model.ts';
import type {
  ArgMap,
  V1beta3ClusterConfiguration,
  V1beta3Component,
  V1beta3InitConfiguration,
  V1beta3JoinConfiguration,
  V1beta3NodeRegistration,
} from './schema-v1beta3.ts';

export interface Converted<T> {
  readonly value: T;
  /** Original paths of moved members, by model path. */
  readonly moved: ReadonlyMap<string, string>;
  /** `apiServer.timeoutForControlPlane`, which ClusterConfiguration no longer has. */
  readonly timeoutForControlPlane?: DurationText;
}

/**
 * Converts a v1beta3 InitConfiguration: arguments become lists sorted by name, as in kubeadm's conversion.
 */
export function convertV1beta3Init(init: V1beta3InitConfiguration): Converted<InitConfiguration> {
  const { nodeRegistration, ...same } = init;
  const moved = new Map<string, string>();
  return { value: { ...same, ...(nodeRegistration && { nodeRegistration: convertNode(nodeRegistration, moved) }) }, moved };
}

/** Converts a v1beta3 JoinConfiguration; `discovery.timeout` becomes `timeouts.discovery`. */
export function convertV1beta3Join(join: V1beta3JoinConfiguration): Converted<JoinConfiguration> {
  const { nodeRegistration, discovery: written, ...same } = join;
  const moved = new Map<string, string>();
  const { timeout, ...discovery } = written ?? {};
  const timeouts: Timeouts | undefined = timeout === undefined ? undefined : { discovery: timeout };
  if (timeouts) moved.set('timeouts', 'discovery.timeout').set('timeouts.discovery', 'discovery.timeout');
  const value = {
    ...same,
    ...(nodeRegistration && { nodeRegistration: convertNode(nodeRegistration, moved) }),
    ...(written && { discovery }),
    ...(timeouts && { timeouts }),
  };
  return { value, moved };
}

/**
 * Converts a v1beta3 ClusterConfiguration. `apiServer.timeoutForControlPlane` is returned separately, for
 * `timeouts.controlPlaneComponentHealthCheck` of InitConfiguration and JoinConfiguration.
 */
export function convertV1beta3Cluster(cluster: V1beta3ClusterConfiguration): Converted<ClusterConfiguration> {
  const { apiServer, controllerManager, scheduler, etcd, ...same } = cluster;
  const moved = new Map<string, string>();
  const { timeoutForControlPlane, certSANs, ...component } = apiServer ?? {};
  const value: ClusterConfiguration = {
    ...same,
    ...(apiServer && { apiServer: { ...convertComponent(component, 'apiServer', moved), ...(certSANs && { certSANs }) } }),
    ...(controllerManager && { controllerManager: convertComponent(controllerManager, 'controllerManager', moved) }),
    ...(scheduler && { scheduler: convertComponent(scheduler, 'scheduler', moved) }),
    ...(etcd && { etcd: convertEtcd(etcd, moved) }),
  };
  return { value, moved, ...(timeoutForControlPlane !== undefined && { timeoutForControlPlane }) };
}

function convertNode({ kubeletExtraArgs, ...same }: V1beta3NodeRegistration, moved: Map<string, string>): NodeRegistration {
  return {
    ...same,
    ...(kubeletExtraArgs && { kubeletExtraArgs: toArgs(kubeletExtraArgs, ['nodeRegistration', 'kubeletExtraArgs'], moved) }),
  };
}

function convertComponent({ extraArgs, ...same }: V1beta3Component, name: string, moved: Map<string, string>): ControlPlaneComponent {
  return { ...same, ...(extraArgs && { extraArgs: toArgs(extraArgs, [name, 'extraArgs'], moved) }) };
}

function convertEtcd(
  { local, external }: NonNullable<V1beta3ClusterConfiguration['etcd']>,
  moved: Map<string, string>,
): NonNullable<ClusterConfiguration['etcd']> {
  return { ...(local && { local: convertLocalEtcd(local, moved) }), ...(external && { external }) };
}

function convertLocalEtcd(
  { extraArgs, ...same }: NonNullable<NonNullable<V1beta3ClusterConfiguration['etcd']>['local']>,
  moved: Map<string, string>,
): LocalEtcd {
  return { ...same, ...(extraArgs && { extraArgs: toArgs(extraArgs, ['etcd', 'local', 'extraArgs'], moved) }) };
}

function toArgs(map: ArgMap, at: readonly string[], moved: Map<string, string>): readonly Arg[] {
  const names = Object.keys(map).sort();
  return names.map((name, i) => {
    const written = formatFieldPath([...at, name]);
    for (const member of [[], ['name'], ['value']]) moved.set(formatFieldPath([...at, i, ...member]), written);
    return { name, value: map[name] as string };
  });
}
