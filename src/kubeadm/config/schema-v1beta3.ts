import * as z from 'zod';
import { duration, imageMeta, optional, text } from './schema-parts.ts';
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
