import * as z from 'zod';
import type { Arg } from '../../base/arg.ts';
import { formatFieldPath } from '../../codec/field-path.ts';
import type { DurationText, ModelSet, NodeRegistration } from './model.ts';
import { type Decoded, duration, imageMeta, optional, text } from './schema-parts.ts';
import { V1BETA4_SCHEMAS } from './schema-v1beta4.ts';

/**
 * kubeadm.k8s.io/v1beta3 as read by kubeadm 1.36, without `apiVersion` and `kind`: v1beta4 without its later fields, and with
 * extra arguments by name. `convertV1beta3` converts it to the model.
 */

const { InitConfiguration, ClusterConfiguration, JoinConfiguration } = V1BETA4_SCHEMAS;

/** Extra arguments: values by name. Order and duplicates cannot be expressed. */
const argMap = z.record(z.string(), text);

const nodeRegistration = InitConfiguration.shape.nodeRegistration
  .unwrap()
  .omit({ imagePullSerial: true })
  .extend({ kubeletExtraArgs: optional(argMap) });

const controlPlaneComponent = ClusterConfiguration.shape.scheduler
  .unwrap()
  .omit({ extraEnvs: true })
  .extend({ extraArgs: optional(argMap) });

const { local, external } = ClusterConfiguration.shape.etcd.unwrap().shape;

const etcd = z.strictObject({
  local: optional(
    local
      .unwrap()
      .omit({ extraEnvs: true })
      .extend({ extraArgs: optional(argMap) }),
  ),
  external: optional(external.unwrap().omit({ httpEndpoints: true })),
});

export const V1BETA3_SCHEMAS = {
  InitConfiguration: InitConfiguration.omit({ dryRun: true, timeouts: true }).extend({ nodeRegistration: optional(nodeRegistration) }),
  ClusterConfiguration: ClusterConfiguration.omit({
    proxy: true,
    encryptionAlgorithm: true,
    certificateValidityPeriod: true,
    caCertificateValidityPeriod: true,
  }).extend({
    etcd: optional(etcd),
    apiServer: optional(
      ClusterConfiguration.shape.apiServer
        .unwrap()
        .extend({ ...controlPlaneComponent.shape, timeoutForControlPlane: optional(duration) })
        .omit({ extraEnvs: true }),
    ),
    controllerManager: optional(controlPlaneComponent),
    scheduler: optional(controlPlaneComponent),
    dns: optional(z.strictObject(imageMeta)),
  }),
  JoinConfiguration: JoinConfiguration.omit({ dryRun: true, timeouts: true }).extend({
    nodeRegistration: optional(nodeRegistration),
    discovery: optional(JoinConfiguration.shape.discovery.unwrap().extend({ timeout: optional(duration) })),
  }),
};

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
