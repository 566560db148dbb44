import { type CertificateContent, certificateOrWhy } from '../../x509/read-certificate.ts';
import type { ClusterConfiguration } from '../config/model.ts';
import { CONTROLLER_CONF_NAME } from '../control-plane/controller-unit.ts';
import { CERTIFICATES, certificatesOf, pkiPath } from './certificate-list.ts';
import { KUBECONFIGS, type KubeconfigDefinition } from './kubeconfig-list.ts';
import type { HostFileReader } from './validate-kubeconfig.ts';
import { clientCertificateOf } from './validate-kubeconfig.ts';

/** A renewable certificate of a control plane: signed by a CA, or the client certificate of a kubeconfig. */
interface Renewable {
  /** Name of its phase below `certs/`, or its file name: `admin.conf`. */
  readonly name: string;
  readonly longName: string;
  /** Its CA by name, and the path of the CA files without extension. */
  readonly ca: string;
  readonly caBase: string;
  readonly crt: string;
  /** Null: the key is in the same file, a kubeconfig. */
  readonly key: string | null;
}

interface PkiDirectories {
  readonly cluster: Pick<ClusterConfiguration, 'etcd'> & { readonly certificatesDir: string };
  readonly kubernetesDir: string;
}

/** kubelet.conf is excluded: the kubelet rotates its own certificate. */
const RENEWABLE_KUBECONFIGS: readonly Pick<KubeconfigDefinition, 'file' | 'longName'>[] = [
  ...KUBECONFIGS.filter(({ name }) => name !== 'kubelet'),
  { file: CONTROLLER_CONF_NAME, longName: `kubeconfig of the controller of rollouts (${CONTROLLER_CONF_NAME})` },
];

/** All names that `certs renew` accepts. */
export const RENEWABLE_NAMES: readonly string[] = [
  ...CERTIFICATES.filter(({ ca }) => ca !== null).map(({ name }) => name),
  ...RENEWABLE_KUBECONFIGS.map(({ file }) => file),
].toSorted();

/**
 * The renewable certificates of a cluster, sorted by name.
 * @see kubeadm 1.36 certs renew
 */
function renewables({ cluster, kubernetesDir }: PkiDirectories): readonly Renewable[] {
  const definitions = certificatesOf(cluster);
  const { certificatesDir } = cluster;
  const baseOf = (name: string): string => `${certificatesDir}/${definitions.find((each) => each.name === name)?.baseName}`;
  const certificates = definitions.flatMap(({ name, longName, ca }): readonly Renewable[] =>
    ca === null ? [] : [{ name, longName, ca, caBase: baseOf(ca), crt: `${baseOf(name)}.crt`, key: `${baseOf(name)}.key` }],
  );
  const kubeconfigs = RENEWABLE_KUBECONFIGS.map(({ file, longName }): Renewable => {
    const place = { crt: `${kubernetesDir}/${file}`, key: null };
    return { name: file, longName: `certificate embedded in the ${longName}`, ca: 'ca', caBase: baseOf('ca'), ...place };
  });
  return [...certificates, ...kubeconfigs].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

export interface FoundRenewable extends Renewable {
  /** Null: no such file. A text: why it cannot be read, as a clause about the file. */
  readonly certificate: CertificateContent | string | null;
  /** The CA certificate exists, but its key does not. */
  readonly isExternal: boolean;
}

export interface FoundCa {
  readonly name: string;
  readonly crt: string;
  readonly certificate: CertificateContent | string | null;
  readonly isExternal: boolean;
}

/** All certificates of a control plane that exist on a host. */
export function findCertificates(
  places: PkiDirectories,
  found: HostFileReader,
): { readonly certificates: readonly FoundRenewable[]; readonly cas: readonly FoundCa[] } {
  const isExternal = (base: string): boolean => found(`${base}.crt`) !== null && found(`${base}.key`) === null;
  const certificates = renewables(places).flatMap((one): readonly FoundRenewable[] => {
    const text = found(one.crt);
    // Only some control planes have one.
    if (one.name === CONTROLLER_CONF_NAME && text === null) return [];
    const certificate = text === null ? null : one.key === null ? clientCertificateOf(text, one.crt) : certificateOrWhy(text);
    return [{ ...one, certificate, isExternal: isExternal(one.caBase) }];
  });
  const cas = certificatesOf(places.cluster)
    .filter(({ ca }) => ca === null)
    .map(({ name, baseName }): FoundCa => {
      const base = `${places.cluster.certificatesDir}/${baseName}`;
      const text = found(`${base}.crt`);
      const certificate = text === null ? null : certificateOrWhy(text);
      return { name, crt: `${base}.crt`, certificate, isExternal: isExternal(base) };
    });
  return { certificates, cas: cas.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** All paths that `findCertificates` reads. */
export function renewablePaths(places: PkiDirectories): readonly string[] {
  const all = renewables(places);
  const cas = certificatesOf(places.cluster)
    .filter(({ ca }) => ca === null)
    .flatMap(({ baseName }) => (['crt', 'key'] as const).map((kind) => pkiPath(places.cluster.certificatesDir, baseName, kind)));
  return [...cas, ...all.flatMap(({ crt, key }) => (key === null ? [crt] : [crt, key]))];
}
