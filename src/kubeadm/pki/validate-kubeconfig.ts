import { isAppError, type Problem } from '../../base/errors.ts';
import type { Warning } from '../../host/plan/change.ts';
import { decodeDataField, type KubeconfigTarget, parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import { chainsTo, isSameCertificate } from '../../x509/certificate-checks.ts';
import { formatName } from '../../x509/describe-certificate.ts';
import { type CertificateContent, certificateOrWhy, readCertificateChain } from '../../x509/read-certificate.ts';
import type { KubeconfigDefinition } from './kubeconfig-list.ts';
import { pkiExpired, pkiKubeconfigUnusable } from './pki-problems.ts';

/** Content of the file at a path on a host; null: no such file. */
export type HostFileReader = (path: string) => string | null;

export interface ValidatedKubeconfig {
  readonly definition: KubeconfigDefinition;
  readonly path: string;
  readonly action: 'keep' | 'make' | 'leave';
}

interface ExistingKubeconfig {
  readonly definition: Pick<KubeconfigDefinition, 'file'> & { readonly name: string };
  readonly path: string;
  readonly text: string;
  readonly expected: { readonly server: string; readonly user: string };
  /** CAs of the cluster; empty: not generated yet. */
  readonly cas: readonly CertificateContent[];
  readonly caPath: string;
  readonly now: Date;
  readonly found: HostFileReader;
}

interface Verdict {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Warning[];
  /** The kubeconfig trusts another CA. */
  readonly isForeign?: true;
}

/**
 * Validates an existing kubeconfig: readable, trusts the cluster CA; an embedded client certificate is signed
 * by that CA and not expired; kubelet.conf is for this node. Another server causes only a warning.
 * @see kubeadm 1.36 kubeconfig
 */
export function validateKubeconfig(existing: ExistingKubeconfig): Verdict {
  const { path, text, expected } = existing;
  const refuse = (why: string): Verdict => ({ problems: [pkiKubeconfigUnusable(path, why)], warnings: [] });
  const target = readTarget(text, path);
  if (typeof target === 'string') return refuse(target);
  const trusted = trustedBy(target, existing);
  if (trusted === null) return refuse('it contains no CA certificate');
  if (!existing.cas.some((ca) => isSameCertificate(ca, trusted))) {
    const why = `it belongs to another cluster: it trusts the CA ${formatName(trusted.subject)}, not the CA in ${existing.caPath}`;
    return { ...refuse(why), isForeign: true };
  }
  const problem = validateClient(target, existing);
  if (problem !== null) return { problems: [problem], warnings: [] };
  if (target.cluster.server === expected.server) return { problems: [], warnings: [] };
  const message = `${path} is kept, although it uses the server ${target.cluster.server} instead of ${expected.server}. To use ${expected.server}, remove the file and rerun the command`;
  return { problems: [], warnings: [{ code: 'PKI_OTHER_SERVER', message }] };
}

function readTarget(text: string, path: string): KubeconfigTarget | string {
  try {
    return resolveContext(parseKubeconfig(text, path));
  } catch (error) {
    if (isAppError(error)) return error.problems[0]?.message ?? 'cannot be read';
    throw error;
  }
}

/** Like kubeadm, uses the first of its CAs. */
function trustedBy({ cluster }: KubeconfigTarget, { found }: ExistingKubeconfig): CertificateContent | null {
  const pem = cluster.caData !== undefined ? decodeDataField(cluster.caData) : cluster.caFile === undefined ? null : found(cluster.caFile);
  return pem === null ? null : (readCertificateChain(pem)?.[0] ?? null);
}

function validateClient({ user }: KubeconfigTarget, existing: ExistingKubeconfig): Problem | null {
  const { definition, path, now, expected, cas } = existing;
  // A certificate that is not embedded is a file that the kubelet manages.
  if (user?.certData === undefined) return null;
  const chain = readCertificateChain(decodeDataField(user.certData));
  if (chain === null) return pkiKubeconfigUnusable(path, 'its client certificate cannot be read');
  const [client, ...between] = chain;
  if (!cas.some((ca) => chainsTo(client, between, ca))) {
    return pkiKubeconfigUnusable(path, `its client certificate is not signed by the CA in ${existing.caPath}`);
  }
  if (now > client.notAfter) {
    const renew = definition.name === 'kubelet' ? '' : `Renew the certificate with kubeletadm certs renew ${definition.file}, or `;
    return pkiExpired(
      `the client certificate in ${path}`,
      client.notAfter,
      `${renew}${renew === '' ? 'Remove' : 'remove'} the file and rerun the command, which generates a new file`,
    );
  }
  const name = client.subject.find(({ type }) => type === 'CN')?.value;
  return definition.name === 'kubelet' && name !== expected.user
    ? pkiKubeconfigUnusable(path, `it is for ${name}, but this node is ${expected.user}`)
    : null;
}

/** The embedded client certificate of a kubeconfig, or why there is none: a clause about the file. */
export function clientCertificateOf(text: string, path: string): CertificateContent | string {
  const target = readTarget(text, path);
  return certificateOrWhy(typeof target === 'string' ? '' : decodeDataField(target.user?.certData ?? ''));
}
