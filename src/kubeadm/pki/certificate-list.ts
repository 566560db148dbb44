import { parseGoDuration } from '../../base/text/go-duration.ts';
import { BACKDATE_MS, type CertificateParameters, type CertificateSpec, type ExtendedUsage } from '../../x509/certificate-issuer.ts';
import { keyAlgorithm } from '../config/defaults.ts';
import type { ClusterConfiguration } from '../config/model.ts';
import { type AltNames, apiServerNames, etcdNames, NO_NAMES, type PkiConfiguration } from './alt-names.ts';

export type CaName = 'ca' | 'front-proxy-ca' | 'etcd-ca';

/** A certificate of a control plane node. `name` is that of its phase below `certs/`. */
export interface CertificateDefinition {
  readonly name: string;
  /** Purpose, as printed by kubeadm. */
  readonly longName: string;
  /** Path of its files below the certificates directory, without `.crt` and `.key`. */
  readonly baseName: string;
  /** The issuing CA; null: self-signed. */
  readonly ca: CaName | null;
  readonly commonName: (pki: PkiConfiguration) => string;
  readonly usages: readonly ExtendedUsage[];
  readonly names: (pki: PkiConfiguration) => AltNames;
}

/** The phase that generates the key pair for service account tokens. */
export const SERVICE_ACCOUNT = 'sa';

const always = (name: string) => (): string => name;
const none = (): AltNames => NO_NAMES;

function ca(name: CaName, baseName: string, commonName: string, longName: string): CertificateDefinition {
  return { name, longName, baseName, ca: null, commonName: always(commonName), usages: [], names: none };
}

function client(by: CaName, baseName: string, commonName: string, longName: string, name = baseName): CertificateDefinition {
  return { name, longName, baseName, ca: by, commonName: always(commonName), usages: ['clientAuth'], names: none };
}

/** An etcd member is a client of its peers and of itself. */
const BOTH_USAGES = ['serverAuth', 'clientAuth'] as const;

/**
 * All certificates, each after its CA: names, subjects, usages and files.
 * @see kubeadm 1.36 certs
 */
export const CERTIFICATES: readonly CertificateDefinition[] = [
  ca('ca', 'ca', 'kubernetes', 'CA of the cluster'),
  {
    name: 'apiserver',
    longName: 'serving certificate of the API server',
    baseName: 'apiserver',
    ca: 'ca',
    commonName: always('kube-apiserver'),
    usages: ['serverAuth'],
    names: apiServerNames,
  },
  client(
    'ca',
    'apiserver-kubelet-client',
    'kube-apiserver-kubelet-client',
    'client certificate of the API server for connections to kubelets',
  ),
  ca('front-proxy-ca', 'front-proxy-ca', 'front-proxy-ca', 'CA of the front proxy'),
  client('front-proxy-ca', 'front-proxy-client', 'front-proxy-client', 'client certificate of the front proxy'),
  ca('etcd-ca', 'etcd/ca', 'etcd-ca', 'CA of etcd'),
  {
    name: 'etcd-server',
    longName: 'serving certificate of etcd',
    baseName: 'etcd/server',
    ca: 'etcd-ca',
    commonName: ({ nodeName }) => nodeName,
    usages: BOTH_USAGES,
    names: (pki) => etcdNames(pki, pki.cluster.etcd.local?.serverCertSANs),
  },
  {
    name: 'etcd-peer',
    longName: 'certificate for connections between etcd members',
    baseName: 'etcd/peer',
    ca: 'etcd-ca',
    commonName: ({ nodeName }) => nodeName,
    usages: BOTH_USAGES,
    names: (pki) => etcdNames(pki, pki.cluster.etcd.local?.peerCertSANs),
  },
  client(
    'etcd-ca',
    'etcd/healthcheck-client',
    'kube-etcd-healthcheck-client',
    'client certificate of the health checks of etcd',
    'etcd-healthcheck-client',
  ),
  client('etcd-ca', 'apiserver-etcd-client', 'kube-apiserver-etcd-client', 'client certificate of the API server for connections to etcd'),
];

/** The certificates of a cluster; with external etcd, without the etcd certificates. */
export function certificatesOf({ etcd }: Pick<ClusterConfiguration, 'etcd'>): readonly CertificateDefinition[] {
  return etcd?.external === undefined ? CERTIFICATES : CERTIFICATES.filter(({ name, ca: by }) => name !== 'etcd-ca' && by !== 'etcd-ca');
}

export function pkiPath(certificatesDir: string, baseName: string, kind: 'crt' | 'key' | 'pub' | 'csr'): string {
  return `${certificatesDir}/${baseName}.${kind}`;
}

/** Algorithm and validity of the cluster's new certificates. */
export function certificateParametersOf(cluster: ClusterConfiguration, now: Date): CertificateParameters {
  return {
    keyAlgorithm: keyAlgorithm(cluster),
    now,
    validMs: milliseconds(cluster.certificateValidityPeriod ?? '8760h'),
    caValidMs: milliseconds(cluster.caCertificateValidityPeriod ?? '87600h'),
  };
}

function milliseconds(duration: string): number {
  return Number((parseGoDuration(duration) ?? 0n) / 1_000_000n);
}

export function specOf(definition: CertificateDefinition, pki: PkiConfiguration, parameters: CertificateParameters): CertificateSpec {
  const isCa = definition.ca === null;
  const commonName = definition.commonName(pki);
  return {
    commonName,
    organizations: [],
    // The common name of a CA is also its SAN.
    ...(isCa ? { dnsNames: [commonName], ipAddresses: [] } : definition.names(pki)),
    usages: definition.usages,
    isCa,
    notBefore: new Date(parameters.now.getTime() - BACKDATE_MS),
    notAfter: new Date(parameters.now.getTime() + (isCa ? parameters.caValidMs : parameters.validMs)),
  };
}
