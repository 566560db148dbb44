import { AppError, type Problem } from '../../../base/errors.ts';
import { revealText, type Secret, SensitiveText } from '../../../base/text/secret.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { CertificateIssuer } from '../../../x509/certificate-issuer.ts';
import { describe } from '../../../x509/describe-certificate.ts';
import { readPrivateKey } from '../../../x509/private-key.ts';
import { readCertificateChain, whyNoCertificate } from '../../../x509/read-certificate.ts';
import type { DefaultedCluster } from '../../config/defaults.ts';
import type { UploadCertsInput } from '../../phases/upload-certs.ts';
import type { WriteFilesInput } from '../../phases/write-files.ts';
import { CERTIFICATE_KEY_BYTES, decryptWithCertificateKey, formatCertificateKey, NONCE_BYTES } from '../../pki/certificate-key.ts';
import { pkiNotUploaded, pkiSharedDiffers, pkiUnreadable, pkiUploadExternal, pkiWrongCertificateKey } from '../../pki/pki-problems.ts';
import { KUBEADM_CERTS, type SharedFile, sharedFiles } from '../../pki/shared-files.ts';
import type { PreparedPki } from './prepare-pki.ts';

export interface UploadOptions {
  readonly cluster: DefaultedCluster;
  readonly pki: Pick<PreparedPki, 'textAt' | 'externalCA' | 'externalFrontProxyCA'>;
  readonly issuer: CertificateIssuer;
  /** Null: a new key is generated. */
  readonly certificateKey: Secret | null;
  readonly freshToken: Secret;
  readonly now: Date;
  readonly show: (key: Secret) => void;
}

export interface PreparedUpload {
  readonly input: UploadCertsInput;
  readonly problems: readonly Problem[];
}

/**
 * Prepares the phase upload-certs. The client credentials for an external etcd are read from the host.
 * @returns problems if a CA key is external
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
  const { freshToken: token, now, show } = options;
  return {
    input: {
      files: shared.map((file) => ({ entry: file.entry, text: textOf(file), nonce: issuer.secureRandomBytes(NONCE_BYTES) })),
      key: certificateKey ?? newCertificateKey(issuer),
      keyIsNew: certificateKey === null,
      ...{ token, now, show },
    },
    problems: pki.externalCA || pki.externalFrontProxyCA ? [{ host: context.host.name, ...pkiUploadExternal() }] : [],
  };
}

export function newCertificateKey(issuer: CertificateIssuer): Secret {
  return formatCertificateKey(issuer.secureRandomBytes(CERTIFICATE_KEY_BYTES));
}

export interface Downloaded {
  /** Input of the phase control-plane-prepare/download-certs. */
  readonly input: WriteFilesInput;
  /** Downloaded files by path. */
  readonly files: ReadonlyMap<string, SensitiveText>;
  readonly problems: readonly Problem[];
}

/**
 * Downloads the certificates that control planes share. Existing files are not replaced. If all files exist, the Secret
 * is not read, so that an interrupted join can continue after the Secret has expired.
 * @throws AppError PKI_NOT_UPLOADED, PKI_WRONG_CERTIFICATE_KEY, exit code 3; the errors of `Cluster`
 */
export async function downloadCerts(
  context: PhaseContext,
  options: {
    readonly clusterConfiguration: DefaultedCluster;
    /** Connected with the bootstrap token, which may read the Secret. */
    readonly cluster: Cluster;
    /** Null: the certificates were copied to the host. */
    readonly certificateKey: Secret | null;
    readonly mayChown: boolean;
  },
): Promise<Downloaded> {
  const { certificateKey, mayChown } = options;
  const shared = sharedFiles(options.clusterConfiguration);
  const facts = await observe(context.host, fileFacts(shared.map(({ path }) => path)), context.signal);
  const existing = (path: string): string | null => facts.get(path)?.content ?? null;
  const nothing = { files: [], directories: [], mayChown };
  if (certificateKey === null) {
    return {
      input: { ...nothing, skipped: 'no --certificate-key was given: the certificates must already be on the host' },
      files: new Map(),
      problems: [],
    };
  }
  if (shared.every(({ path }) => existing(path) !== null)) return { input: nothing, files: new Map(), problems: [] };
  const read = await readShared(options.cluster, shared, certificateKey);
  const problems = read
    .filter(({ path, text }) => existing(path) !== null && existing(path) !== revealText(text))
    .map(({ path }) => pkiSharedDiffers(path));
  const desired = read.map(({ path, text }) => sharedFile(path, text));
  const damaged = read.flatMap(({ path, text }, i) =>
    desired[i] === null ? [pkiUnreadable(`${path} in the Secret kube-system/kubeadm-certs`, whyNoCertificate(revealText(text)))] : [],
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

/** Null: the text is neither a key nor a certificate. */
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
