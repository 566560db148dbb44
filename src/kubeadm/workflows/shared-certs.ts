import { AppError, type Problem } from '../../base/errors.ts';
import { revealText, type Secret, SensitiveText } from '../../base/text/secret.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { observe } from '../../host/observe.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { CertificateIssuer } from '../../x509/certificate-issuer.ts';
import { describe } from '../../x509/describe-certificate.ts';
import { readCertificateChain } from '../../x509/read-certificate.ts';
import type { DefaultedCluster } from '../config/defaults.ts';
import type { UploadCertsInput } from '../phases/upload-certs.ts';
import type { WriteFilesInput } from '../phases/write-files.ts';
import { CERTIFICATE_KEY_BYTES, decryptWithCertificateKey, formatCertificateKey, NONCE_BYTES } from '../pki/certificate-key.ts';
import { pkiNotUploaded, pkiSharedDiffers, pkiUnreadable, pkiUploadExternal, pkiWrongCertificateKey } from '../pki/pki-problems.ts';
import { readPrivateKey } from '../pki/private-key.ts';
import { KUBEADM_CERTS, type SharedFile, sharedFiles } from '../pki/shared-files.ts';
import type { PreparedPki } from './prepare-pki.ts';

export interface UploadOptions {
  readonly cluster: DefaultedCluster;
  readonly pki: Pick<PreparedPki, 'textAt' | 'externalCA' | 'externalFrontProxyCA'>;
  readonly issuer: CertificateIssuer;
  /** Null: one is made. */
  readonly certificateKey: Secret | null;
  readonly freshToken: Secret;
  readonly now: Date;
  readonly assumeEmptyCluster: boolean;
  readonly show: (key: Secret) => void;
}

export interface PreparedUpload {
  readonly input: UploadCertsInput;
  readonly problems: readonly Problem[];
}

/**
 * What the phase upload-certs needs. The credentials of an external etcd are read from the host.
 * @returns problems, when the keys of authorities are elsewhere
 */
export async function prepareUpload(context: PhaseContext, options: UploadOptions): Promise<PreparedUpload> {
  const { pki, issuer, certificateKey } = options;
  const shared = sharedFiles(options.cluster);
  const elsewhere = shared.filter(({ path }) => pki.textAt(path) === null).map(({ path }) => path);
  const facts = elsewhere.length === 0 ? new Map() : await observe(context.host, fileFacts(elsewhere), context.signal);
  const textOf = ({ path }: SharedFile): SensitiveText | null => {
    const content = facts.get(path)?.content;
    return pki.textAt(path) ?? (content === undefined ? null : new SensitiveText([content]));
  };
  const { freshToken: token, now, assumeEmptyCluster, show } = options;
  return {
    input: {
      files: shared.map((file) => ({ entry: file.entry, text: textOf(file), nonce: issuer.unforeseenBytes(NONCE_BYTES) })),
      key: certificateKey ?? newCertificateKey(issuer),
      keyIsNew: certificateKey === null,
      ...{ token, now, assumeEmptyCluster, show },
    },
    problems: pki.externalCA || pki.externalFrontProxyCA ? [{ host: context.host.name, ...pkiUploadExternal() }] : [],
  };
}

/** A certificate key that nobody can foretell. */
export function newCertificateKey(issuer: CertificateIssuer): Secret {
  return formatCertificateKey(issuer.unforeseenBytes(CERTIFICATE_KEY_BYTES));
}

export interface DownloadOptions {
  readonly clusterConfiguration: DefaultedCluster;
  /** As the joining node: the bootstrap token may read the Secret. */
  readonly cluster: Cluster;
  /** Null: the certificates were copied. */
  readonly certificateKey: Secret | null;
  readonly mayChown: boolean;
}

export interface Downloaded {
  /** Of the phase control-plane-prepare/download-certs. */
  readonly input: WriteFilesInput;
  /** What will be there, by path. */
  readonly files: ReadonlyMap<string, SensitiveText>;
  readonly problems: readonly Problem[];
}

/**
 * Gets what all control planes share from the cluster. What is on the host already is not replaced; when all of it is, nothing is asked of the cluster: whoever goes on
 * with joining needs the Secret no more.
 * @throws AppError PKI_NOT_UPLOADED, PKI_WRONG_CERTIFICATE_KEY, exit code 3; what `Cluster` throws
 */
export async function downloadCerts(context: PhaseContext, options: DownloadOptions): Promise<Downloaded> {
  const { certificateKey, mayChown } = options;
  const shared = sharedFiles(options.clusterConfiguration);
  const facts = await observe(context.host, fileFacts(shared.map(({ path }) => path)), context.signal);
  const existing = (path: string): string | null => facts.get(path)?.content ?? null;
  const nothing = { files: [], directories: [], mayChown };
  if (certificateKey === null) {
    return { input: { ...nothing, skipped: 'no certificate key was given: the certificates were copied' }, files: new Map(), problems: [] };
  }
  if (shared.every(({ path }) => existing(path) !== null)) return { input: nothing, files: new Map(), problems: [] };
  const read = await readShared(options.cluster, shared, certificateKey);
  const problems = read
    .filter(({ path, text }) => existing(path) !== null && existing(path) !== revealText(text))
    .map(({ path }) => pkiSharedDiffers(path));
  const desired = read.map(({ path, text }) => sharedFile(path, text));
  const damaged = desired.flatMap((file, i) =>
    file === null ? [pkiUnreadable(`${read[i]?.path} as it was uploaded`, 'certificate')] : [],
  );
  const files = desired.filter((file) => file !== null);
  return {
    input: { ...nothing, files },
    files: new Map(read.map(({ path, text }) => [path, text])),
    problems: [...problems, ...damaged].map((problem) => ({ host: context.host.name, ...problem })),
  };
}

async function readShared(
  cluster: Cluster,
  shared: readonly SharedFile[],
  key: Secret,
): Promise<readonly { readonly path: string; readonly text: SensitiveText }[]> {
  const secret = await cluster.get(KUBEADM_CERTS);
  if (secret === null) throw refused(pkiNotUploaded('the cluster has no Secret kube-system/kubeadm-certs'));
  const data = (secret.data ?? {}) as Readonly<Record<string, string>>;
  return shared.flatMap(({ entry, path }) => {
    if (!Object.hasOwn(data, entry)) throw refused(pkiNotUploaded(`the Secret kube-system/kubeadm-certs has no ${entry}`));
    const bytes = Buffer.from(data[entry] ?? '', 'base64');
    if (bytes.length === 0) return [];
    const text = decryptWithCertificateKey(bytes, key);
    if (text === null) throw refused(pkiWrongCertificateKey(entry));
    return [{ path, text }];
  });
}

/** Null: it is neither a key nor a certificate. */
function sharedFile(path: string, text: SensitiveText): DesiredFile | null {
  const base = { path, owner: 'root:root', onlyIfAbsent: true, content: text };
  if (readPrivateKey(text) !== null) return { ...base, mode: 0o600, summary: {} };
  const pem = revealText(text);
  const chain = readCertificateChain(pem);
  if (chain !== null) return { ...base, content: pem, mode: 0o644, summary: { certificate: describe(chain[0]) } };
  return /-----BEGIN (?:RSA )?PUBLIC KEY-----/.test(pem) ? { ...base, content: pem, mode: 0o644 } : null;
}

function refused(problem: Problem): AppError {
  return new AppError(problem, { exitCode: 3 });
}
