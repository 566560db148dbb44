import type { Problem } from '../../base/errors.ts';
import { flagNeeds } from '../../codec/document-problems.ts';
import { type ApplyFlag, type FlagTable, nodeFlags, sets } from './flag-table.ts';
import type { Flags } from './flag-values.ts';
import * as read from './flag-values.ts';
import { type FlagValue, isProblem } from './flag-values.ts';
import type { BootstrapTokenDiscovery, Discovery, JoinConfiguration, ModelSet } from './model.ts';

const JOIN = 'JoinConfiguration';

/** The flags and the argument of `join`. */
export const JOIN_FLAGS: FlagTable = {
  ...nodeFlags(JOIN, 'join'),
  'api-server-endpoint': sets(`${JOIN}.discovery.bootstrapToken.apiServerEndpoint`, read.text, (models, apiServerEndpoint) =>
    inTokenDiscovery(models, { apiServerEndpoint }),
  ),
  'discovery-file': sets(`${JOIN}.discovery.file`, read.text, (models, kubeConfigPath) =>
    inDiscovery(models, { file: { kubeConfigPath } }),
  ),
  token: setToken,
  'discovery-token': sets(`${JOIN}.discovery.bootstrapToken.token`, read.token, (models, token) => inTokenDiscovery(models, { token })),
  'discovery-token-ca-cert-hash': sets(`${JOIN}.discovery.bootstrapToken.caCertHashes`, read.list, (models, caCertHashes) =>
    inTokenDiscovery(models, { caCertHashes }),
  ),
  'discovery-token-unsafe-skip-ca-verification': sets(
    `${JOIN}.discovery.bootstrapToken.unsafeSkipCAVerification`,
    read.boolean,
    (models, unsafeSkipCAVerification) => inTokenDiscovery(models, { unsafeSkipCAVerification }),
  ),
  'tls-bootstrap-token': sets(`${JOIN}.discovery.tlsBootstrapToken`, read.token, (models, tlsBootstrapToken) =>
    inDiscovery(models, { tlsBootstrapToken }),
  ),
  'control-plane': setControlPlane,
  'certificate-key': sets(`${JOIN}.controlPlane.certificateKey`, read.certificateKey, (models, certificateKey) =>
    inControlPlane(models, { certificateKey }),
  ),
  'apiserver-advertise-address': sets(`${JOIN}.controlPlane.localAPIEndpoint.advertiseAddress`, read.text, (models, advertiseAddress) =>
    inControlPlane(models, { localAPIEndpoint: { advertiseAddress } }),
  ),
  'apiserver-bind-port': sets(`${JOIN}.controlPlane.localAPIEndpoint.bindPort`, read.integer, (models, bindPort) =>
    inControlPlane(models, { localAPIEndpoint: { bindPort } }),
  ),
};

/**
 * Control plane flags without --control-plane. kubeadm warns and joins a worker; here they are errors, since
 * the user wants a control plane.
 */
export function needlessFlags(join: JoinConfiguration, flags: Flags): readonly Problem[] {
  if (join.controlPlane) return [];
  const given = ['certificate-key', 'apiserver-advertise-address', 'apiserver-bind-port'].filter(
    (name) => flags[name] !== undefined && flags[name] !== '',
  );
  return given.map((name) => ({ ...flagNeeds('--control-plane'), path: `--${name}` }));
}

/**
 * Sets the token for discovery and TLS bootstrap; only for TLS bootstrap with discovery by file. More
 * specific flags are applied later.
 */
function setToken(models: ModelSet, value: FlagValue): ReturnType<ApplyFlag> {
  const token = read.token(value);
  if (isProblem(token)) return token;
  const forKubelet = inDiscovery(models, { tlsBootstrapToken: token });
  const paths = [`${JOIN}.discovery.tlsBootstrapToken`];
  const { file, bootstrapToken } = models.join?.discovery ?? {};
  if (file && !bootstrapToken) return { models: forKubelet, paths };
  return { models: inTokenDiscovery(forKubelet, { token }), paths: [...paths, `${JOIN}.discovery.bootstrapToken.token`] };
}

/** Makes the node a control plane or a worker. Control plane settings of a file keep their position. */
function setControlPlane(models: ModelSet, value: FlagValue): ReturnType<ApplyFlag> {
  const desired = read.boolean(value);
  if (isProblem(desired)) return desired;
  const { controlPlane, ...worker } = models.join ?? {};
  if (!desired) return { models: { ...models, join: worker }, paths: [] };
  return controlPlane ? { models, paths: [] } : { models: inJoin(models, { controlPlane: {} }), paths: [`${JOIN}.controlPlane`] };
}

function inJoin(models: ModelSet, join: JoinConfiguration): ModelSet {
  return { ...models, join: { ...models.join, ...join } };
}

function inDiscovery(models: ModelSet, discovery: Discovery): ModelSet {
  return inJoin(models, { discovery: { ...models.join?.discovery, ...discovery } });
}

function inTokenDiscovery(models: ModelSet, token: BootstrapTokenDiscovery): ModelSet {
  return inDiscovery(models, { bootstrapToken: { ...models.join?.discovery?.bootstrapToken, ...token } });
}

/**
 * Flags of the new control plane; without --control-plane they are ignored and reported by `needlessFlags`.
 */
function inControlPlane(models: ModelSet, part: NonNullable<JoinConfiguration['controlPlane']>): ModelSet {
  const before = models.join?.controlPlane;
  if (!before) return models;
  const { localAPIEndpoint, ...other } = part;
  const endpoint = localAPIEndpoint && { localAPIEndpoint: { ...before.localAPIEndpoint, ...localAPIEndpoint } };
  return inJoin(models, { controlPlane: { ...before, ...other, ...endpoint } });
}
