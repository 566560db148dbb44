import { formatFieldPath } from '../../codec/field-path.ts';
import { type FlagTable, nodeFlags, sets } from './flag-table.ts';
import * as read from './flag-values.ts';
import { isProblem } from './flag-values.ts';
import type { ApiEndpoint, BootstrapToken, ClusterConfiguration, InitConfiguration, ModelSet } from './model.ts';

const INIT = 'InitConfiguration';
const CLUSTER = 'ClusterConfiguration';

export const INIT_FLAGS: FlagTable = {
  ...nodeFlags(INIT, 'init'),
  token: sets(`${INIT}.bootstrapTokens`, read.token, (models, token) => inInit(models, { bootstrapTokens: [{ token }] })),
  'token-ttl': (models, value) => {
    const ttl = read.duration(value);
    if (isProblem(ttl)) return ttl;
    const tokens: readonly BootstrapToken[] = models.init?.bootstrapTokens?.length ? models.init.bootstrapTokens : [{}];
    const bootstrapTokens = tokens.map(({ expires: _, ...token }) => ({ ...token, ttl }));
    return { models: inInit(models, { bootstrapTokens }), paths: tokens.map((_, i) => `${INIT}.bootstrapTokens[${i}].ttl`) };
  },
  'certificate-key': sets(`${INIT}.certificateKey`, read.certificateKey, (models, certificateKey) => inInit(models, { certificateKey })),
  'apiserver-advertise-address': sets(`${INIT}.localAPIEndpoint.advertiseAddress`, read.text, (models, advertiseAddress) =>
    inLocalEndpoint(models, { advertiseAddress }),
  ),
  'apiserver-bind-port': sets(`${INIT}.localAPIEndpoint.bindPort`, read.integer, (models, bindPort) =>
    inLocalEndpoint(models, { bindPort }),
  ),
  'pod-network-cidr': sets(`${CLUSTER}.networking.podSubnet`, read.text, (models, podSubnet) => inNetworking(models, { podSubnet })),
  'service-cidr': sets(`${CLUSTER}.networking.serviceSubnet`, read.text, (models, serviceSubnet) =>
    inNetworking(models, { serviceSubnet }),
  ),
  'service-dns-domain': sets(`${CLUSTER}.networking.dnsDomain`, read.text, (models, dnsDomain) => inNetworking(models, { dnsDomain })),
  'kubernetes-version': sets(`${CLUSTER}.kubernetesVersion`, read.text, (models, kubernetesVersion) =>
    inCluster(models, { kubernetesVersion }),
  ),
  'control-plane-endpoint': sets(`${CLUSTER}.controlPlaneEndpoint`, read.text, (models, controlPlaneEndpoint) =>
    inCluster(models, { controlPlaneEndpoint }),
  ),
  'apiserver-cert-extra-sans': sets(`${CLUSTER}.apiServer.certSANs`, read.list, (models, certSANs) =>
    inCluster(models, { apiServer: { ...models.cluster?.apiServer, certSANs } }),
  ),
  'cert-dir': sets(`${CLUSTER}.certificatesDir`, read.text, (models, certificatesDir) => inCluster(models, { certificatesDir })),
  'image-repository': sets(`${CLUSTER}.imageRepository`, read.text, (models, imageRepository) => inCluster(models, { imageRepository })),
  'feature-gates': (models, value) => {
    const gates = read.featureGates(value);
    if (isProblem(gates)) return gates;
    const paths = Object.keys(gates).map((name) => formatFieldPath([CLUSTER, 'featureGates', name]));
    return { models: inCluster(models, { featureGates: { ...models.cluster?.featureGates, ...gates } }), paths };
  },
};

function inInit(models: ModelSet, init: InitConfiguration): ModelSet {
  return { ...models, init: { ...models.init, ...init } };
}

function inLocalEndpoint(models: ModelSet, endpoint: ApiEndpoint): ModelSet {
  return inInit(models, { localAPIEndpoint: { ...models.init?.localAPIEndpoint, ...endpoint } });
}

function inCluster(models: ModelSet, cluster: ClusterConfiguration): ModelSet {
  return { ...models, cluster: { ...models.cluster, ...cluster } };
}

function inNetworking(models: ModelSet, networking: NonNullable<ClusterConfiguration['networking']>): ModelSet {
  return inCluster(models, { networking: { ...models.cluster?.networking, ...networking } });
}
