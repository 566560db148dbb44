import * as z from 'zod';
import {
  apiEndpoint,
  bootstrapTokenDiscovery,
  bootstrapTokenSchema,
  certificateKey,
  duration,
  envVar,
  fileDiscovery,
  flag,
  hostPathMount,
  imageMeta,
  networking,
  optional,
  optionalToken,
  patches,
  pullPolicy,
  taint,
  text,
  texts,
} from './schema-parts.ts';

/**
 * kubeadm.k8s.io/v1beta4 as read by kubeadm 1.36, without `apiVersion` and `kind`. The parsed value is the
 * model itself.
 */

const arg = z.strictObject({ name: text, value: text.default('') });
const args = z.array(arg);

const timeouts = z.strictObject({
  controlPlaneComponentHealthCheck: optional(duration),
  kubeletHealthCheck: optional(duration),
  kubernetesAPICall: optional(duration),
  etcdAPICall: optional(duration),
  tlsBootstrap: optional(duration),
  discovery: optional(duration),
  upgradeManifests: optional(duration),
});

const nodeRegistration = z.strictObject({
  name: optional(text),
  criSocket: optional(text),
  taints: optional(z.array(taint)),
  kubeletExtraArgs: optional(args),
  ignorePreflightErrors: optional(texts),
  imagePullPolicy: optional(pullPolicy),
  imagePullSerial: optional(flag),
});

const initConfiguration = z.strictObject({
  bootstrapTokens: optional(z.array(bootstrapTokenSchema)),
  dryRun: optional(flag),
  nodeRegistration: optional(nodeRegistration),
  localAPIEndpoint: optional(apiEndpoint),
  certificateKey: optional(certificateKey),
  skipPhases: optional(texts),
  patches: optional(patches),
  timeouts: optional(timeouts),
});

const component = {
  extraArgs: optional(args),
  extraVolumes: optional(z.array(hostPathMount)),
  extraEnvs: optional(z.array(envVar)),
};
const controlPlaneComponent = z.strictObject(component);
const apiServer = z.strictObject({ ...component, certSANs: optional(texts) });
const dns = z.strictObject({ ...imageMeta, disabled: optional(flag) });
const encryptionAlgorithm = z.enum(['RSA-2048', 'RSA-3072', 'RSA-4096', 'ECDSA-P256', 'ECDSA-P384']);

const etcd = z.strictObject({
  local: optional(
    z.strictObject({
      ...imageMeta,
      dataDir: optional(text),
      extraArgs: optional(args),
      extraEnvs: optional(z.array(envVar)),
      serverCertSANs: optional(texts),
      peerCertSANs: optional(texts),
    }),
  ),
  external: optional(
    z.strictObject({
      endpoints: optional(texts),
      httpEndpoints: optional(texts),
      caFile: optional(text),
      certFile: optional(text),
      keyFile: optional(text),
    }),
  ),
});

const clusterConfiguration = z.strictObject({
  etcd: optional(etcd),
  networking: optional(networking),
  kubernetesVersion: optional(text),
  controlPlaneEndpoint: optional(text),
  apiServer: optional(apiServer),
  controllerManager: optional(controlPlaneComponent),
  scheduler: optional(controlPlaneComponent),
  dns: optional(dns),
  proxy: optional(z.strictObject({ disabled: optional(flag) })),
  certificatesDir: optional(text),
  imageRepository: optional(text),
  featureGates: optional(z.record(z.string(), flag)),
  clusterName: optional(text),
  encryptionAlgorithm: optional(encryptionAlgorithm),
  certificateValidityPeriod: optional(duration),
  caCertificateValidityPeriod: optional(duration),
});

const discovery = z.strictObject({
  bootstrapToken: optional(bootstrapTokenDiscovery),
  file: optional(fileDiscovery),
  tlsBootstrapToken: optional(optionalToken),
});

const joinConfiguration = z.strictObject({
  dryRun: optional(flag),
  nodeRegistration: optional(nodeRegistration),
  caCertPath: optional(text),
  discovery: optional(discovery),
  controlPlane: optional(z.strictObject({ localAPIEndpoint: optional(apiEndpoint), certificateKey: optional(certificateKey) })),
  skipPhases: optional(texts),
  patches: optional(patches),
  timeouts: optional(timeouts),
});

const unmountFlag = z.enum(['MNT_FORCE', 'MNT_DETACH', 'MNT_EXPIRE', 'UMOUNT_NOFOLLOW']);

const resetConfiguration = z.strictObject({
  cleanupTmpDir: optional(flag),
  certificatesDir: optional(text),
  criSocket: optional(text),
  dryRun: optional(flag),
  force: optional(flag),
  ignorePreflightErrors: optional(texts),
  skipPhases: optional(texts),
  unmountFlags: optional(z.array(unmountFlag)),
  timeouts: optional(timeouts),
});

const upgradeConfiguration = z.strictObject({
  apply: optional(
    z.strictObject({
      kubernetesVersion: optional(text),
      allowExperimentalUpgrades: optional(flag),
      allowRCUpgrades: optional(flag),
      certificateRenewal: optional(flag),
      dryRun: optional(flag),
      etcdUpgrade: optional(flag),
      forceUpgrade: optional(flag),
      ignorePreflightErrors: optional(texts),
      patches: optional(patches),
      printConfig: optional(flag),
      skipPhases: optional(texts),
      imagePullPolicy: optional(pullPolicy),
      imagePullSerial: optional(flag),
    }),
  ),
  diff: optional(z.strictObject({ kubernetesVersion: optional(text), contextLines: optional(z.int()) })),
  node: optional(
    z.strictObject({
      certificateRenewal: optional(flag),
      dryRun: optional(flag),
      etcdUpgrade: optional(flag),
      ignorePreflightErrors: optional(texts),
      skipPhases: optional(texts),
      patches: optional(patches),
      imagePullPolicy: optional(pullPolicy),
      imagePullSerial: optional(flag),
    }),
  ),
  plan: optional(
    z.strictObject({
      kubernetesVersion: optional(text),
      allowExperimentalUpgrades: optional(flag),
      allowRCUpgrades: optional(flag),
      dryRun: optional(flag),
      etcdUpgrade: optional(flag),
      ignorePreflightErrors: optional(texts),
      printConfig: optional(flag),
    }),
  ),
  timeouts: optional(timeouts),
});

export const V1BETA4_SCHEMAS = {
  InitConfiguration: initConfiguration,
  ClusterConfiguration: clusterConfiguration,
  JoinConfiguration: joinConfiguration,
  ResetConfiguration: resetConfiguration,
  UpgradeConfiguration: upgradeConfiguration,
};
