import type * as z from 'zod';
import type { Arg } from '../../base/arg.ts';
import { formatFieldPath } from '../../codec/field-path.ts';
import type { DurationText, ModelSet, NodeRegistration } from './model.ts';
import type { Decoded } from './schema-parts.ts';
import type { V1BETA3_SCHEMAS } from './schema-v1beta3.ts';

type V1beta3<K extends keyof typeof V1BETA3_SCHEMAS> = Decoded<z.output<(typeof V1BETA3_SCHEMAS)[K]>>;

/** The model of one document. */
export interface ConvertedModel extends ModelSet {
  /**
   * `apiServer.timeoutForControlPlane` of ClusterConfiguration, for `timeouts.controlPlaneComponentHealthCheck` of
   * InitConfiguration and JoinConfiguration.
   */
  readonly timeoutForControlPlane?: DurationText | undefined;
}

/**
 * Converts documents of v1beta3. Arguments become lists sorted by name, as in kubeadm's conversion; `discovery.timeout`
 * becomes `timeouts.discovery`. `moved` gets the original path of each moved member, by model path.
 */
export const V1BETA3_CONVERSIONS: {
  readonly [K in keyof typeof V1BETA3_SCHEMAS]: (written: V1beta3<K>, moved: Map<string, string>) => ConvertedModel;
} = {
  InitConfiguration: ({ nodeRegistration: node, ...init }, moved) => ({ init: { ...init, ...convertNode(node, moved) } }),
  JoinConfiguration: ({ nodeRegistration: node, discovery: written, ...join }, moved) => {
    const { timeout, ...discovery } = written ?? {};
    if (timeout !== undefined) moved.set('timeouts', 'discovery.timeout').set('timeouts.discovery', 'discovery.timeout');
    return {
      join: {
        ...join,
        ...convertNode(node, moved),
        ...(written && { discovery }),
        ...(timeout !== undefined && { timeouts: { discovery: timeout } }),
      },
    };
  },
  ClusterConfiguration: ({ apiServer, controllerManager, scheduler, etcd, ...same }, moved) => {
    const { timeoutForControlPlane, ...ownApiServer } = apiServer ?? {};
    const local = etcd?.local && { local: withArgs(etcd.local, ['etcd', 'local'], moved) };
    const cluster = {
      ...same,
      ...(apiServer && { apiServer: withArgs(ownApiServer, ['apiServer'], moved) }),
      ...(controllerManager && { controllerManager: withArgs(controllerManager, ['controllerManager'], moved) }),
      ...(scheduler && { scheduler: withArgs(scheduler, ['scheduler'], moved) }),
      ...(etcd && { etcd: { ...local, ...(etcd.external && { external: etcd.external }) } }),
    };
    return { cluster, timeoutForControlPlane };
  },
};

function convertNode(
  nodeRegistration: V1beta3<'InitConfiguration'>['nodeRegistration'],
  moved: Map<string, string>,
): { readonly nodeRegistration?: NodeRegistration } {
  if (nodeRegistration === undefined) return {};
  const { kubeletExtraArgs: map, ...same } = nodeRegistration;
  const at = ['nodeRegistration', 'kubeletExtraArgs'];
  return { nodeRegistration: { ...same, ...(map && { kubeletExtraArgs: toArgs(map, at, moved) }) } };
}

/** A component at a path, with its arguments as a list. */
function withArgs<T extends { readonly extraArgs?: Readonly<Record<string, string>> }>(
  { extraArgs, ...same }: T,
  at: readonly string[],
  moved: Map<string, string>,
) {
  return { ...same, ...(extraArgs && { extraArgs: toArgs(extraArgs, [...at, 'extraArgs'], moved) }) };
}

function toArgs(map: Readonly<Record<string, string>>, at: readonly string[], moved: Map<string, string>): readonly Arg[] {
  const names = Object.keys(map).sort();
  return names.map((name, i) => {
    const written = formatFieldPath([...at, name]);
    for (const member of [[], ['name'], ['value']]) moved.set(formatFieldPath([...at, i, ...member]), written);
    return { name, value: map[name] as string };
  });
}
