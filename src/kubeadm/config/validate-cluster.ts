import { closestName } from '../../base/text/closest-name.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import {
  deprecatedFeatureGate,
  longValidity,
  mutuallyExclusive,
  outlivesCa,
  requiredWith,
  unknownFeatureGate,
} from '../../codec/document-problems.ts';
import { formatFieldPath } from '../../codec/field-path.ts';
import type { ClusterConfiguration, ControlPlaneComponent, ExternalEtcd, HostPathMount, LocalEtcd } from './model.ts';
import type { ConfigFinding } from './origins.ts';
import { NEWEST_RELEASE_FACTS } from './releases.ts';
import * as rules from './rules.ts';
import { networkingFindings } from './validate-networking.ts';
import { argumentFindings, findingOfValue, findingsOfItems } from './validate-parts.ts';

/** All errors of a ClusterConfiguration. */
export function* clusterFindings(cluster: ClusterConfiguration): Iterable<ConfigFinding> {
  const path = 'ClusterConfiguration';
  yield* networkingFindings(cluster);
  yield* findingsOfItems(`${path}.apiServer.certSANs`, cluster.apiServer?.certSANs, (san) => rules.certSan(san.toLowerCase()));
  yield* componentFindings(`${path}.apiServer`, cluster.apiServer ?? {});
  yield* componentFindings(`${path}.controllerManager`, cluster.controllerManager ?? {});
  yield* componentFindings(`${path}.scheduler`, cluster.scheduler ?? {});
  yield* findingOfValue(`${path}.kubernetesVersion`, cluster.kubernetesVersion, rules.kubernetesVersion);
  yield* findingOfValue(`${path}.controlPlaneEndpoint`, cluster.controlPlaneEndpoint, rules.controlPlaneEndpoint);
  yield* findingOfValue(`${path}.certificatesDir`, cluster.certificatesDir, rules.absolutePath);
  yield* findingOfValue(`${path}.imageRepository`, cluster.imageRepository, rules.imageRepository);
  yield* findingOfValue(`${path}.dns.imageRepository`, cluster.dns?.imageRepository, rules.imageRepository);
  yield* featureGateFindings(cluster);
  yield* etcdFindings(`${path}.etcd`, cluster);
  yield* validityFindings(path, cluster);
}

function* componentFindings(path: string, component: ControlPlaneComponent): Iterable<ConfigFinding> {
  yield* argumentFindings(`${path}.extraArgs`, component.extraArgs);
  yield* volumeFindings(`${path}.extraVolumes`, component.extraVolumes ?? []);
  for (const [i, env] of (component.extraEnvs ?? []).entries()) {
    if (env.value !== undefined && env.valueFrom !== undefined) {
      yield { path: `${path}.extraEnvs[${i}].valueFrom`, problem: mutuallyExclusive('value', 'valueFrom') };
    }
  }
}

/**
 * Stricter than kubeadm, which does not validate these paths: a relative path would depend on the kubelet's
 * working directory.
 */
function* volumeFindings(path: string, volumes: readonly HostPathMount[]): Iterable<ConfigFinding> {
  for (const [i, { hostPath }] of volumes.entries()) yield* findingOfValue(`${path}[${i}].hostPath`, hostPath, rules.absolutePath);
}

const FEATURE_GATES = NEWEST_RELEASE_FACTS.featureGates;

function* featureGateFindings({ featureGates = {} }: ClusterConfiguration): Iterable<ConfigFinding> {
  for (const [name, on] of Object.entries(featureGates)) {
    const at = formatFieldPath(['ClusterConfiguration', 'featureGates', name]);
    if (!FEATURE_GATES.includes(name)) {
      yield { path: at, problem: unknownFeatureGate(name, FEATURE_GATES, closestName(name, FEATURE_GATES)) };
    }
    if (name === 'PublicKeysECDSA')
      yield { path: at, problem: deprecatedFeatureGate(name, 'Set encryptionAlgorithm: ECDSA-P256 (v1beta4) instead') };
    if (name === 'NodeLocalCRISocket' && !on)
      yield {
        path: at,
        problem: deprecatedFeatureGate(
          name,
          'Remove the feature gate. The CRI socket is then set in instance-config.yaml instead of a kubelet flag',
        ),
      };
  }
}

function* etcdFindings(path: string, { etcd = {} }: ClusterConfiguration): Iterable<ConfigFinding> {
  if (etcd.local && etcd.external) {
    yield { path, problem: mutuallyExclusive('local', 'external') };
    return;
  }
  if (etcd.local) yield* localEtcdFindings(`${path}.local`, etcd.local);
  if (etcd.external) yield* externalEtcdFindings(`${path}.external`, etcd.external);
}

function* localEtcdFindings(path: string, local: LocalEtcd): Iterable<ConfigFinding> {
  yield* findingOfValue(`${path}.dataDir`, local.dataDir, rules.absolutePath);
  yield* findingOfValue(`${path}.imageRepository`, local.imageRepository, rules.imageRepository);
  yield* findingsOfItems(`${path}.serverCertSANs`, local.serverCertSANs, rules.certSan);
  yield* findingsOfItems(`${path}.peerCertSANs`, local.peerCertSANs, rules.certSan);
  yield* argumentFindings(`${path}.extraArgs`, local.extraArgs);
}

function* externalEtcdFindings(path: string, external: ExternalEtcd): Iterable<ConfigFinding> {
  const { endpoints = [], httpEndpoints = [], caFile, certFile, keyFile } = external;
  const needsHttps = [caFile, certFile, keyFile].some((file) => file !== undefined);
  if (endpoints.length === 0) yield { path: `${path}.endpoints`, problem: requiredWith('an endpoint', 'for external etcd'), missing: true };
  yield* findingsOfItems(`${path}.endpoints`, endpoints, (url) => rules.etcdUrl(url, needsHttps));
  yield* findingsOfItems(`${path}.httpEndpoints`, httpEndpoints, (url) => rules.etcdUrl(url, false));
  if ((certFile === undefined) !== (keyFile === undefined)) {
    const [lacking, given] = certFile === undefined ? ['certFile', 'keyFile'] : ['keyFile', 'certFile'];
    yield { path: `${path}.${given}`, problem: requiredWith(lacking, `with ${given}`), missing: true };
  } else if (certFile !== undefined && caFile === undefined) {
    yield { path: `${path}.certFile`, problem: requiredWith('caFile', 'with certFile and keyFile'), missing: true };
  }
  for (const [name, file] of Object.entries({ caFile, certFile, keyFile }))
    yield* findingOfValue(`${path}.${name}`, file, rules.absolutePath);
}

const USUAL_VALIDITY = '8760h0m0s';
const USUAL_CA_VALIDITY = '87600h0m0s';

function* validityFindings(path: string, cluster: ClusterConfiguration): Iterable<ConfigFinding> {
  const certificate = cluster.certificateValidityPeriod ?? USUAL_VALIDITY;
  const ca = cluster.caCertificateValidityPeriod ?? USUAL_CA_VALIDITY;
  const at = { certificate: `${path}.certificateValidityPeriod`, ca: `${path}.caCertificateValidityPeriod` };
  yield* findingOfValue(at.certificate, certificate, rules.notNegative);
  yield* findingOfValue(at.ca, ca, rules.notNegative);
  if (isLonger(certificate, USUAL_VALIDITY)) yield { path: at.certificate, problem: longValidity(certificate, USUAL_VALIDITY) };
  if (isLonger(ca, USUAL_CA_VALIDITY)) yield { path: at.ca, problem: longValidity(ca, USUAL_CA_VALIDITY) };
  if (isLonger(certificate, ca)) yield { path: at.certificate, problem: outlivesCa(certificate, ca) };
}

function isLonger(a: string, b: string): boolean {
  return (parseGoDuration(a) ?? 0n) > (parseGoDuration(b) ?? 0n);
}
