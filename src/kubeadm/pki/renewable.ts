import { type CertificateContent, readCertificateChain } from '../../x509/read-certificate.ts';
import type { ClusterConfiguration } from '../config/model.ts';
import { CERTIFICATES, type CertificateDefinition, certificatesOf, pkiPath } from './certificate-list.ts';
import { KUBECONFIGS } from './kubeconfig-list.ts';
import type { FoundText } from './validate-kubeconfig.ts';
import { clientCertificateOf } from './validate-kubeconfig.ts';

/** A certificate of a control plane that can be renewed: one that an authority signs, or the client certificate of a kubeconfig. */
export interface Renewable {
  /** That of its phase below `certs/`, or the name of its file: `admin.conf`. */
  readonly name: string;
  readonly longName: string;
  /** Its authority, by name and by the path of its files without their ends. */
  readonly authority: string;
  readonly authorityBase: string;
  readonly crt: string;
  /** Null: it is in the same file, a kubeconfig. */
  readonly key: string | null;
}

/** Where the certificates of a control plane are. */
export interface PkiPlaces {
  readonly cluster: Pick<ClusterConfiguration, 'etcd'> & { readonly certificatesDir: string };
  readonly kubernetesDir: string;
}

/** kubelet.conf is not among them: the kubelet renews its own. */
const RENEWABLE_KUBECONFIGS = KUBECONFIGS.filter(({ name }) => name !== 'kubelet');

/** All names, as `certs renew` takes them. */
export const RENEWABLE_NAMES: readonly string[] = [
  ...CERTIFICATES.filter(({ authority }) => authority !== null).map(({ name }) => name),
  ...RENEWABLE_KUBECONFIGS.map(({ file }) => file),
].toSorted();

/**
 * What can be renewed in a cluster, by name.
 * @see kubeadm 1.36 certs renew
 */
function renewables({ cluster, kubernetesDir }: PkiPlaces): readonly Renewable[] {
  const definitions = certificatesOf(cluster);
  const { certificatesDir } = cluster;
  const baseOf = (name: string): string =>
    pkiPathBase(
      certificatesDir,
      definitions.find((each) => each.name === name),
    );
  const certificates = definitions.flatMap(({ name, longName, baseName, authority }): readonly Renewable[] =>
    authority === null
      ? []
      : [
          {
            ...{ name, longName, authority, authorityBase: baseOf(authority) },
            ...{ crt: pkiPath(certificatesDir, baseName, 'crt'), key: pkiPath(certificatesDir, baseName, 'key') },
          },
        ],
  );
  const kubeconfigs = RENEWABLE_KUBECONFIGS.map(
    ({ file, longName }): Renewable => ({
      ...{ name: file, longName: `certificate embedded in the ${longName}`, authority: 'ca', authorityBase: baseOf('ca') },
      ...{ crt: `${kubernetesDir}/${file}`, key: null },
    }),
  );
  return [...certificates, ...kubeconfigs].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function pkiPathBase(certificatesDir: string, definition: CertificateDefinition | undefined): string {
  return `${certificatesDir}/${definition?.baseName}`;
}

/** A certificate as it was found. */
export interface FoundRenewable extends Renewable {
  /** Null: there is no such file. `unreadable`: there is one without a certificate. */
  readonly certificate: CertificateContent | 'unreadable' | null;
  /** The certificate of its authority is there, its key is not. */
  readonly isExternal: boolean;
}

/** An authority as it was found. */
export interface FoundAuthority {
  readonly name: string;
  readonly crt: string;
  readonly certificate: CertificateContent | 'unreadable' | null;
  readonly isExternal: boolean;
}

/** All certificates of a control plane as they are on a host. */
export function findCertificates(
  places: PkiPlaces,
  found: FoundText,
): { readonly certificates: readonly FoundRenewable[]; readonly authorities: readonly FoundAuthority[] } {
  const isExternal = (base: string): boolean => found(`${base}.crt`) !== null && found(`${base}.key`) === null;
  const certificates = renewables(places).map((one): FoundRenewable => {
    const text = found(one.crt);
    const read = text === null ? null : one.key === null ? clientCertificateOf(text, one.crt) : (readCertificateChain(text)?.[0] ?? null);
    return { ...one, certificate: text === null ? null : (read ?? 'unreadable'), isExternal: isExternal(one.authorityBase) };
  });
  const authorities = certificatesOf(places.cluster)
    .filter(({ authority }) => authority === null)
    .map(({ name, baseName }): FoundAuthority => {
      const base = `${places.cluster.certificatesDir}/${baseName}`;
      const text = found(`${base}.crt`);
      const certificate = text === null ? null : (readCertificateChain(text)?.[0] ?? 'unreadable');
      return { name, crt: `${base}.crt`, certificate, isExternal: isExternal(base) };
    });
  return { certificates, authorities: authorities.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** All paths `findCertificates` asks for. */
export function renewablePaths(places: PkiPlaces): readonly string[] {
  const all = renewables(places);
  const authorities = certificatesOf(places.cluster)
    .filter(({ authority }) => authority === null)
    .flatMap(({ baseName }) => (['crt', 'key'] as const).map((kind) => pkiPath(places.cluster.certificatesDir, baseName, kind)));
  return [...authorities, ...all.flatMap(({ crt, key }) => (key === null ? [crt] : [crt, key]))];
}
