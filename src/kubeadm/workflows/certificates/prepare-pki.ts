import type { Problem } from '../../../base/errors.ts';
import { revealText, Secret, SensitiveText } from '../../../base/text/secret.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import { type DesiredFile, formatMode, notAFile } from '../../../host/plan/diff-file.ts';
import { clientCertificateKubeconfig } from '../../../kube/kubeconfig-render.ts';
import type { CertificateIssuer, Signer } from '../../../x509/certificate-issuer.ts';
import { describeCertificate } from '../../../x509/describe-certificate.ts';
import { readPrivateKey } from '../../../x509/private-key.ts';
import { readCertificate } from '../../../x509/read-certificate.ts';
import type { PkiInput } from '../../phases/pki.ts';
import type { WriteFilesInput } from '../../phases/write-files.ts';
import {
  type CertificateDefinition,
  certificateParametersOf,
  certificatesOf,
  pkiPath,
  SERVICE_ACCOUNT,
  specOf,
} from '../../pki/certificate-list.ts';
import { clientSpecOf, type KubeconfigDefinition, serverOf } from '../../pki/kubeconfig-list.ts';
import type { HostFileReader } from '../../pki/validate-kubeconfig.ts';
import { type DesiredPki, pkiPaths, type ValidatedCertificate, type ValidatedPki, validatePki } from '../../pki/validate-pki.ts';

export interface PkiOptions extends Omit<DesiredPki, 'now'> {
  readonly issuer: CertificateIssuer;
  /** Files that an earlier phase writes: the certificates downloaded from the cluster. */
  readonly given?: ReadonlyMap<string, string | SensitiveText> | undefined;
  readonly mayChown: boolean;
}

export interface PreparedPki extends PkiInput {
  /** Content of a certificate, key or kubeconfig after the run; null: the file does not exist. */
  readonly textAt: (path: string) => SensitiveText | null;
  readonly externalCA: boolean;
  readonly externalFrontProxyCA: boolean;
  /** Reasons against writing any file. */
  readonly problems: readonly Problem[];
  readonly warnings: readonly Warning[];
}

/**
 * Validates the certificates, keys and kubeconfigs of a control plane host, and generates the missing ones for the
 * phases to write. Changes nothing on the host. Existing CA keys are read only for signing; each generated key is sent
 * to the host once.
 * @throws AppError CONFIG_INVALID_SUBNET; the errors of `Host`
 */
export async function preparePki(context: PhaseContext, options: PkiOptions): Promise<PreparedPki> {
  const desired: DesiredPki = { ...options, now: context.clock.now() };
  const facts = await observe(context.host, fileFacts(pkiPaths(options)), context.signal);
  const given = options.given ?? new Map<string, string | SensitiveText>();
  const found: HostFileReader = (path) => {
    const text = given.get(path);
    if (text !== undefined) return revealText(text);
    return facts.get(path)?.content ?? null;
  };
  const validated = validatePki(desired, found);
  const made = await new PkiMaker({ desired, found, validated, issuer: options.issuer }).make();
  const texts = new Map([...made.certificates.values(), ...made.kubeconfigs.values()].flat().map(({ path, content }) => [path, content]));
  const input = (files: readonly DesiredFile[]): WriteFilesInput => ({ files, directories: [], mayChown: options.mayChown });
  return {
    certificates: new Map([...made.certificates].map(([name, files]) => [name, input(files)])),
    kubeconfigs: new Map([...made.kubeconfigs].map(([name, files]) => [name, input(files)])),
    textAt: (path) => {
      const text = texts.get(path) ?? found(path);
      return text === null ? null : typeof text === 'string' ? new SensitiveText([new Secret(text)]) : text;
    },
    externalCA: validated.externalCA,
    externalFrontProxyCA: validated.externalFrontProxyCA,
    problems: [...notFiles(facts), ...validated.problems].map((problem) => ({ host: context.host.name, ...problem })),
    warnings: [...validated.warnings, ...openSecrets(facts)],
  };
}

function notFiles(facts: ReadonlyMap<string, FileFact | null>): readonly Problem[] {
  return [...facts].flatMap(([path, file]) => notAFile(path, file) ?? []);
}

/** Warns about keys, and kubeconfigs with keys, that users other than the owner can read. */
function openSecrets(facts: ReadonlyMap<string, FileFact | null>): readonly Warning[] {
  return [...facts].flatMap(([path, file]) => {
    if (file?.type !== 'file' || (file.mode & 0o077) === 0 || !/\.(?:key|conf)$/.test(path)) return [];
    const message = `${path} contains a private key and is readable by other users (mode ${formatMode(file.mode)}). Run chmod 600 ${path}`;
    return [{ code: 'PKI_KEY_READABLE', message }];
  });
}

interface PkiWork {
  readonly desired: DesiredPki;
  readonly found: HostFileReader;
  readonly validated: ValidatedPki;
  readonly issuer: CertificateIssuer;
}

type FilesByName = ReadonlyMap<string, readonly DesiredFile[]>;

/** Generates the missing files. Files whose CA cannot sign are omitted; `validated.problems` names the reason. */
class PkiMaker {
  readonly #work: PkiWork;
  readonly #signers = new Map<string, Promise<Signer | null>>();
  readonly #made = new Map<string, Promise<readonly DesiredFile[]>>();

  constructor(work: PkiWork) {
    this.#work = work;
  }

  async make(): Promise<{ readonly certificates: FilesByName; readonly kubeconfigs: FilesByName }> {
    const { validated } = this.#work;
    // Generate all keys in parallel: RSA keys take long.
    for (const one of validated.certificates) this.#certificate(one);
    const serviceAccount = this.#serviceAccount();
    const kubeconfigs = validated.kubeconfigs.map(
      async ({ definition, path, action }) => [definition.name, action === 'make' ? await this.#kubeconfig(definition, path) : []] as const,
    );
    const certificates = [...this.#made].map(async ([name, files]) => [name, await files] as const);
    return {
      certificates: new Map([...(await Promise.all(certificates)), [SERVICE_ACCOUNT, await serviceAccount]]),
      kubeconfigs: new Map(await Promise.all(kubeconfigs)),
    };
  }

  #certificate(one: ValidatedCertificate): Promise<readonly DesiredFile[]> {
    const { name } = one.definition;
    const known = this.#made.get(name) ?? (one.action === 'make' || one.action === 'certify' ? this.#issue(one) : Promise.resolve([]));
    this.#made.set(name, known);
    return known;
  }

  async #issue({ definition, crt, key, action }: ValidatedCertificate): Promise<readonly DesiredFile[]> {
    const { desired, found, issuer } = this.#work;
    const signer = definition.ca === null ? 'self' : this.#signer(definition.ca);
    const keyPem = action === 'certify' ? new Secret(found(key) ?? '') : await issuer.generateKey(this.#parameters.keyAlgorithm);
    const by = await signer;
    if (by === null || readPrivateKey(keyPem) === null) return [];
    const pem = await issuer.issue(specOf(definition, desired.node, this.#parameters), keyPem, by);
    return [...(action === 'make' ? [privateKeyFile(key, keyPem)] : []), certificateFile(crt, pem)];
  }

  get #parameters() {
    const { node, now } = this.#work.desired;
    return certificateParametersOf(node.cluster, now);
  }

  /** Null: the CA is missing or its key cannot sign. */
  #signer(name: string): Promise<Signer | null> {
    const known = this.#signers.get(name) ?? this.#findSigner(name);
    this.#signers.set(name, known);
    return known;
  }

  async #findSigner(name: string): Promise<Signer | null> {
    const { validated, found } = this.#work;
    const ca = validated.certificates.find(({ definition }) => definition.name === name) as ValidatedCertificate;
    const made = new Map((await this.#certificate(ca)).map(({ path, content }) => [path, content]));
    const text = (path: string): string | null => {
      const content = made.get(path) ?? found(path);
      return content === null ? null : revealText(content);
    };
    const [certificate, keyPem] = [readCertificate(text(ca.crt) ?? ''), text(ca.key)];
    const key = keyPem === null ? null : readPrivateKey(keyPem);
    if (certificate === null || keyPem === null || key === null) return null;
    const isGood = certificate.isCa && certificate.x509.checkPrivateKey(key);
    return isGood ? { certificatePem: certificate.pem, keyPem: new Secret(keyPem) } : null;
  }

  async #serviceAccount(): Promise<readonly DesiredFile[]> {
    const { desired, found, validated, issuer } = this.#work;
    const { certificatesDir } = desired.node.cluster;
    const [key, pub] = [pkiPath(certificatesDir, SERVICE_ACCOUNT, 'key'), pkiPath(certificatesDir, SERVICE_ACCOUNT, 'pub')];
    const publicFile = (keyPem: Secret): DesiredFile => ({ ...NEW_FILE, path: pub, content: issuer.publicKeyOf(keyPem), mode: 0o600 });
    switch (validated.serviceAccount) {
      case 'make': {
        if (validated.externalCA || found(pub) !== null) return [];
        const keyPem = await issuer.generateKey(this.#parameters.keyAlgorithm);
        return [privateKeyFile(key, keyPem), publicFile(keyPem)];
      }
      case 'publish':
        return validated.problems.length > 0 ? [] : [publicFile(new Secret(found(key) ?? ''))];
      default:
        return [];
    }
  }

  async #kubeconfig(definition: KubeconfigDefinition, path: string): Promise<readonly DesiredFile[]> {
    const { desired, issuer } = this.#work;
    const [signer, keyPem] = await Promise.all([this.#signer('ca'), issuer.generateKey(this.#parameters.keyAlgorithm)]);
    if (signer === null || signer === 'self') return [];
    const caNotBefore = readCertificate(signer.certificatePem)?.notBefore ?? desired.now;
    const spec = clientSpecOf(definition, desired.node, { ...this.#parameters, caNotBefore });
    const certificatePem = await issuer.issue(spec, keyPem, signer);
    const { clusterName } = desired.node.cluster;
    const [server, user] = [serverOf(definition, desired.node), spec.commonName];
    const content = clientCertificateKubeconfig({ clusterName, server, caPem: signer.certificatePem, user, certificatePem, keyPem });
    const kubeconfig = { cluster: clusterName, server, user, currentContext: `${user}@${clusterName}` };
    return [{ ...NEW_FILE, path, content, mode: 0o600, summary: { kubeconfig, certificate: describeCertificate(certificatePem) } }];
  }
}

const NEW_FILE = { owner: 'root:root', onlyIfAbsent: true } as const;

function privateKeyFile(path: string, keyPem: Secret): DesiredFile {
  return { ...NEW_FILE, path, content: new SensitiveText([keyPem]), mode: 0o600, summary: {} };
}

function certificateFile(path: string, pem: string): DesiredFile {
  return { ...NEW_FILE, path, content: pem, mode: 0o644, summary: { certificate: describeCertificate(pem) } };
}

/** The names passed to `makes.certificate`: all certificates of a cluster and `sa`. */
export function certificateNames(cluster: Parameters<typeof certificatesOf>[0]): readonly string[] {
  return [...certificatesOf(cluster).map(({ name }: CertificateDefinition) => name), SERVICE_ACCOUNT];
}
