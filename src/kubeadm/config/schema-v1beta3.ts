import * as z from 'zod';
import type { Secret } from '../../base/text/secret.ts';
import type {
  BootstrapToken,
  BootstrapTokenDiscovery,
  ControlPlaneComponent,
  DurationText,
  ExternalEtcd,
  ImageMeta,
  JoinControlPlane,
  LocalEtcd,
  Networking,
  NodeRegistration,
  Patches,
} from './model.ts';
import {
  apiEndpoint,
  bootstrapTokenDiscovery,
  bootstrapTokenSchema,
  certificateKey,
  duration,
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
 * kubeadm.k8s.io/v1beta3 as read by kubeadm 1.36, without `apiVersion` and `kind`. `convertV1beta3` converts
 * it to the model.
 */

/** Extra arguments: values by name. Order and duplicates cannot be expressed. */
export type ArgMap = Readonly<Record<string, string>>;

export interface V1beta3NodeRegistration extends Omit<NodeRegistration, 'kubeletExtraArgs' | 'imagePullSerial'> {
  readonly kubeletExtraArgs?: ArgMap;
}

export interface V1beta3InitConfiguration {
  readonly bootstrapTokens?: readonly BootstrapToken[];
  readonly nodeRegistration?: V1beta3NodeRegistration;
  readonly localAPIEndpoint?: { readonly advertiseAddress?: string; readonly bindPort?: number };
  readonly certificateKey?: Secret;
  readonly skipPhases?: readonly string[];
  readonly patches?: Patches;
}

export interface V1beta3Component extends Omit<ControlPlaneComponent, 'extraArgs' | 'extraEnvs'> {
  readonly extraArgs?: ArgMap;
}

export interface V1beta3ClusterConfiguration {
  readonly etcd?: {
    readonly local?: Omit<LocalEtcd, 'extraArgs' | 'extraEnvs'> & { readonly extraArgs?: ArgMap };
    readonly external?: Omit<ExternalEtcd, 'httpEndpoints'>;
  };
  readonly networking?: Networking;
  readonly kubernetesVersion?: string;
  readonly controlPlaneEndpoint?: string;
  readonly apiServer?: V1beta3Component & { readonly certSANs?: readonly string[]; readonly timeoutForControlPlane?: DurationText };
  readonly controllerManager?: V1beta3Component;
  readonly scheduler?: V1beta3Component;
  readonly dns?: ImageMeta;
  readonly certificatesDir?: string;
  readonly imageRepository?: string;
  readonly featureGates?: Readonly<Record<string, boolean>>;
  readonly clusterName?: string;
}

export interface V1beta3JoinConfiguration {
  readonly nodeRegistration?: V1beta3NodeRegistration;
  readonly caCertPath?: string;
  readonly discovery?: {
    readonly bootstrapToken?: BootstrapTokenDiscovery;
    readonly file?: { readonly kubeConfigPath?: string };
    readonly tlsBootstrapToken?: Secret;
    readonly timeout?: DurationText;
  };
  readonly controlPlane?: JoinControlPlane;
  readonly skipPhases?: readonly string[];
  readonly patches?: Patches;
}

interface V1beta3Models {
  readonly InitConfiguration: V1beta3InitConfiguration;
  readonly ClusterConfiguration: V1beta3ClusterConfiguration;
  readonly JoinConfiguration: V1beta3JoinConfiguration;
}

const argMap: z.ZodType<ArgMap> = z.record(z.string(), text);

const nodeRegistration: z.ZodType<V1beta3NodeRegistration> = z.strictObject({
  name: optional(text),
  criSocket: optional(text),
  taints: optional(z.array(taint)),
  kubeletExtraArgs: optional(argMap),
  ignorePreflightErrors: optional(texts),
  imagePullPolicy: optional(pullPolicy),
});

const initConfiguration: z.ZodType<V1beta3InitConfiguration> = z.strictObject({
  bootstrapTokens: optional(z.array(bootstrapTokenSchema)),
  nodeRegistration: optional(nodeRegistration),
  localAPIEndpoint: optional(apiEndpoint),
  certificateKey: optional(certificateKey),
  skipPhases: optional(texts),
  patches: optional(patches),
});

const component = { extraArgs: optional(argMap), extraVolumes: optional(z.array(hostPathMount)) };
const controlPlaneComponent: z.ZodType<V1beta3Component> = z.strictObject(component);

const clusterConfiguration: z.ZodType<V1beta3ClusterConfiguration> = z.strictObject({
  etcd: optional(
    z.strictObject({
      local: optional(
        z.strictObject({
          ...imageMeta,
          dataDir: optional(text),
          extraArgs: optional(argMap),
          serverCertSANs: optional(texts),
          peerCertSANs: optional(texts),
        }),
      ),
      external: optional(
        z.strictObject({ endpoints: optional(texts), caFile: optional(text), certFile: optional(text), keyFile: optional(text) }),
      ),
    }),
  ),
  networking: optional(networking),
  kubernetesVersion: optional(text),
  controlPlaneEndpoint: optional(text),
  apiServer: optional(z.strictObject({ ...component, certSANs: optional(texts), timeoutForControlPlane: optional(duration) })),
  controllerManager: optional(controlPlaneComponent),
  scheduler: optional(controlPlaneComponent),
  dns: optional(z.strictObject(imageMeta)),
  certificatesDir: optional(text),
  imageRepository: optional(text),
  featureGates: optional(z.record(z.string(), flag)),
  clusterName: optional(text),
});

const joinConfiguration: z.ZodType<V1beta3JoinConfiguration> = z.strictObject({
  nodeRegistration: optional(nodeRegistration),
  caCertPath: optional(text),
  discovery: optional(
    z.strictObject({
      bootstrapToken: optional(bootstrapTokenDiscovery),
      file: optional(fileDiscovery),
      tlsBootstrapToken: optional(optionalToken),
      timeout: optional(duration),
    }),
  ),
  controlPlane: optional(z.strictObject({ localAPIEndpoint: optional(apiEndpoint), certificateKey: optional(certificateKey) })),
  skipPhases: optional(texts),
  patches: optional(patches),
});

export const V1BETA3_SCHEMAS: { readonly [K in keyof V1beta3Models]: z.ZodType<V1beta3Models[K]> } = {
  InitConfiguration: initConfiguration,
  ClusterConfiguration: clusterConfiguration,
  JoinConfiguration: joinConfiguration,
};
