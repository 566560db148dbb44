import type { KeyObject } from 'node:crypto';
import type { Problem } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';
import type { Warning } from '../../host/plan/change.ts';
import { chainsTo, missingNames } from '../../x509/certificate-checks.ts';
import { formatName } from '../../x509/describe-certificate.ts';
import { publicKeyFits, readPrivateKey } from '../../x509/private-key.ts';
import { type CertificateContent, readCertificateChain, whyNoCertificate } from '../../x509/read-certificate.ts';
import type { PkiConfiguration } from './alt-names.ts';
import {
  type CaName,
  type CertificateDefinition,
  certificateParametersOf,
  certificatesOf,
  pkiPath,
  SERVICE_ACCOUNT,
} from './certificate-list.ts';
import { type KubeconfigDefinition, serverOf } from './kubeconfig-list.ts';
import {
  pkiCaLost,
  pkiCaMissing,
  pkiCaReplaced,
  pkiExpired,
  pkiExternalIncomplete,
  pkiForeign,
  pkiKeyMismatch,
  pkiKeyMissing,
  pkiNamesMissing,
  pkiNoKey,
  pkiNotCa,
  pkiNotYetValid,
  pkiSharedMissing,
  pkiUnreadable,
} from './pki-problems.ts';
import type { HostFileReader } from './validate-kubeconfig.ts';
import { type ValidatedKubeconfig, validateKubeconfig } from './validate-kubeconfig.ts';

export interface DesiredPki {
  readonly node: PkiConfiguration;
  readonly kubernetesDir: string;
  readonly kubeconfigs: readonly KubeconfigDefinition[];
  /** Whether the phase of a certificate, of the `sa` keys, or of a kubeconfig runs. */
  readonly generates: { readonly certificate: (name: string) => boolean; readonly kubeconfig: (name: string) => boolean };
  /**
   * An additional control plane: CAs and the `sa` keys are copied from the existing control planes and are never
   * generated.
   */
  readonly joins?: boolean | undefined;
  readonly now: Date;
}

export interface ValidatedCertificate {
  readonly definition: CertificateDefinition;
  readonly crt: string;
  readonly key: string;
  /**
   * keep: exists and is valid · make: generate with its key · certify: generate for the existing key · leave:
   * does not exist and is not generated.
   */
  readonly action: 'keep' | 'make' | 'certify' | 'leave';
  /** The existing certificate, followed by the intermediates to its CA. */
  readonly chain: readonly CertificateContent[];
}

export interface ValidatedPki {
  readonly certificates: readonly ValidatedCertificate[];
  /** The service account keys; publish: only the private key exists. */
  readonly serviceAccount: 'keep' | 'make' | 'publish' | 'leave';
  readonly kubeconfigs: readonly ValidatedKubeconfig[];
  /** The certificate of the cluster CA exists, but its key does not. */
  readonly externalCA: boolean;
  readonly externalFrontProxyCA: boolean;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Warning[];
}

/**
 * Validates the existing certificates, keys and kubeconfigs of a control plane, and decides which ones to
 * generate. Existing files are never replaced: an invalid file is a problem.
 *
 * Like kubeadm 1.36: CAs are CA certificates; certificates chain to their CA, are valid now and contain all
 * SANs; kubeconfigs trust the cluster CA. In addition: keys match, and CAs are valid now. A key without a
 * certificate gets one, which resumes an interrupted run.
 * @throws AppError CONFIG_INVALID_SUBNET as `specOf`
 */
export function validatePki(desired: DesiredPki, found: HostFileReader): ValidatedPki {
  const notes: Notes = { problems: [], warnings: [], unsigned: [], orphans: [], foreign: [], belongs: new Set() };
  const cas = new Map<CaName, ValidatedCertificate>();
  const certificates = certificatesOf(desired.node.cluster).map((definition) => {
    const by = definition.ca === null ? null : (cas.get(definition.ca) ?? null);
    const validated = validateOne({ definition, by, desired, found, notes });
    if (definition.ca === null) cas.set(definition.name as CaName, validated);
    return validated;
  });
  const ca = cas.get('ca') as ValidatedCertificate;
  if (desired.joins === true) notes.problems.push(...missingShared(desired, found));
  const external = (name: CaName): boolean => isExternal(cas.get(name), found);
  const serviceAccount = validateServiceAccount(desired, found, external('ca'), notes);
  const kubeconfigs = validateKubeconfigs(desired, found, ca, notes);
  return {
    ...{ certificates, serviceAccount, kubeconfigs },
    externalCA: external('ca'),
    externalFrontProxyCA: external('front-proxy-ca'),
    problems: [...lostCas(notes), ...withoutSigner(notes, kubeconfigs), ...withReplacedCas(notes)],
    warnings: notes.warnings,
  };
}

function withoutSigner({ unsigned }: Notes, kubeconfigs: readonly ValidatedKubeconfig[]): readonly Problem[] {
  const existing = kubeconfigs.filter(({ action }) => action === 'keep').map(({ definition }) => definition.name);
  const isWorker = existing.join() === 'kubelet';
  return [...groupBy(unsigned, ({ caKey }) => caKey)].map(([caKey, files]) =>
    pkiExternalIncomplete(
      files.map(({ path }) => path),
      { caKey, isWorker },
    ),
  );
}

function lostCas({ orphans }: Notes): readonly Problem[] {
  return [...groupBy(orphans, ({ ca }) => ca)].map(([ca, files]) =>
    pkiCaLost(
      ca,
      files.map(({ path }) => path),
    ),
  );
}

/**
 * If several files belong to a CA other than the existing one, and none to the existing one, the CA is the wrong file.
 */
function withReplacedCas({ problems, foreign, belongs }: Notes): readonly Problem[] {
  const replaced = [...groupBy(foreign, ({ ca }) => ca)].filter(([ca, files]) => !belongs.has(ca) && files.length > 1);
  const theirs = new Set(replaced.flatMap(([, files]) => files.map(({ problem }) => problem)));
  const causes = new Map(
    replaced.map(([ca, files]) => [
      files[0]?.problem,
      pkiCaReplaced(
        ca,
        files.map(({ path }) => path),
      ),
    ]),
  );
  return problems.flatMap((problem) => causes.get(problem) ?? (theirs.has(problem) ? [] : problem));
}

/** All paths that `validatePki` reads. */
export function pkiPaths({
  node,
  kubernetesDir,
  kubeconfigs,
}: Pick<DesiredPki, 'kubernetesDir' | 'kubeconfigs'> & { readonly node: Pick<PkiConfiguration, 'cluster'> }): readonly string[] {
  const { certificatesDir } = node.cluster;
  return [
    ...certificatesOf(node.cluster).flatMap(({ baseName }) => [
      pkiPath(certificatesDir, baseName, 'crt'),
      pkiPath(certificatesDir, baseName, 'key'),
    ]),
    pkiPath(certificatesDir, 'sa', 'key'),
    pkiPath(certificatesDir, 'sa', 'pub'),
    ...kubeconfigs.map(({ file }) => `${kubernetesDir}/${file}`),
  ];
}

/** CA keys may be external; the CA certificates and the service account keys must exist. */
function missingShared({ node }: DesiredPki, found: HostFileReader): readonly Problem[] {
  const { certificatesDir } = node.cluster;
  const cas = certificatesOf(node.cluster).filter(({ ca }) => ca === null);
  const paths = [
    ...cas.map(({ baseName }) => pkiPath(certificatesDir, baseName, 'crt')),
    pkiPath(certificatesDir, SERVICE_ACCOUNT, 'key'),
    pkiPath(certificatesDir, SERVICE_ACCOUNT, 'pub'),
  ];
  const missing = paths.filter((path) => found(path) === null);
  return missing.length === 0 ? [] : [pkiSharedMissing(missing)];
}

interface Notes {
  readonly problems: Problem[];
  readonly warnings: Warning[];
  /** Missing files that the CA must sign, without its key. */
  readonly unsigned: { readonly path: string; readonly caKey: string }[];
  /** Existing files whose CA does not exist. */
  readonly orphans: { readonly path: string; readonly ca: string }[];
  /** Existing files signed by a CA other than the existing one. */
  readonly foreign: { readonly path: string; readonly ca: string; readonly problem: Problem }[];
  /** Paths of CAs that signed existing files. */
  readonly belongs: Set<string>;
}

interface OneCertificate {
  readonly definition: CertificateDefinition;
  readonly by: ValidatedCertificate | null;
  readonly desired: DesiredPki;
  readonly found: HostFileReader;
  readonly notes: Notes;
}

function isExternal(ca: ValidatedCertificate | undefined, found: HostFileReader): boolean {
  return ca !== undefined && ca.chain.length > 0 && found(ca.key) === null;
}

function validateOne(one: OneCertificate): ValidatedCertificate {
  const { definition, desired, found } = one;
  const { certificatesDir } = desired.node.cluster;
  const [crt, key] = [pkiPath(certificatesDir, definition.baseName, 'crt'), pkiPath(certificatesDir, definition.baseName, 'key')];
  const [crtText, keyText] = [found(crt), found(key)];
  const base = { definition, crt, key };
  if (crtText !== null) {
    const chain = readCertificateChain(crtText);
    if (chain === null) one.notes.problems.push(pkiUnreadable(crt, whyNoCertificate(crtText)));
    else validateExisting(one, chain, { crt, key, keyText });
    return { ...base, action: 'keep', chain: chain ?? [] };
  }
  const isShared = desired.joins === true && definition.ca === null;
  if (isShared || !desired.generates.certificate(definition.name)) return { ...base, action: 'leave', chain: [] };
  const readable = keyText === null || readPrivateKey(keyText) !== null;
  if (!readable) one.notes.problems.push(pkiNoKey(key, 'private key'));
  validateSigner(one, crt);
  return { ...base, action: keyText === null ? 'make' : 'certify', chain: [] };
}

function validateExisting(
  { definition, by, desired, notes }: OneCertificate,
  [certificate, ...between]: readonly [CertificateContent, ...CertificateContent[]],
  { crt, key, keyText }: { readonly crt: string; readonly key: string; readonly keyText: string | null },
): void {
  const { problems } = notes;
  const isCa = definition.ca === null;
  if (isCa && !certificate.isCa) problems.push(pkiNotCa(crt, formatName(certificate.subject)));
  const renew = isCa
    ? 'Replace the CA, then generate all certificates of this CA again'
    : `Renew the certificate with kubeletadm certs renew ${definition.name}, or remove ${crt} and ${key} and rerun the command: both files are generated again`;
  if (desired.now > certificate.notAfter) problems.push(pkiExpired(crt, certificate.notAfter, renew));
  if (desired.now < certificate.notBefore) problems.push(pkiNotYetValid(crt, certificate.notBefore, desired.now));
  const privateKey = keyText === null ? null : readPrivateKey(keyText);
  if (keyText === null && !isCa) problems.push(pkiKeyMissing(crt, key));
  if (keyText !== null && privateKey === null) problems.push(pkiNoKey(key, 'private key'));
  if (privateKey !== null && !certificate.x509.checkPrivateKey(privateKey))
    problems.push(pkiKeyMismatch(crt, key, isCa ? 'Replace the key with that of this CA' : undefined));
  if (by === null) return;
  const [ca] = by.chain;
  // A CA that is still to be generated did not sign existing files.
  if (by.action === 'leave' && desired.joins !== true && desired.generates.certificate(definition.name)) {
    problems.push(pkiCaMissing(crt, by.crt, `certs/${by.definition.name}`));
  }
  if (isMade(by)) notes.orphans.push({ path: crt, ca: by.crt });
  else if (ca !== undefined && chainsTo(certificate, between, ca)) notes.belongs.add(by.crt);
  else if (ca !== undefined)
    noteForeign(notes, { path: crt, ca: by.crt, problem: pkiForeign(crt, key, formatName(certificate.issuer), by.crt) });
  const missing = missingNames(certificate, definition.names(desired.node));
  if (missing.length > 0) problems.push(pkiNamesMissing(crt, key, missing));
}

function noteForeign(notes: Notes, one: Notes['foreign'][number]): void {
  notes.foreign.push(one);
  notes.problems.push(one.problem);
}

function isMade({ action }: ValidatedCertificate): boolean {
  return action === 'make' || action === 'certify';
}

/** Whether the CA for a certificate to be generated is available. */
function validateSigner({ definition, by, desired, found, notes }: OneCertificate, crt: string): void {
  if (by === null) return;
  if (by.action === 'leave' && desired.joins === true) return;
  if (by.action === 'leave') notes.problems.push(pkiCaMissing(crt, by.crt, `certs/${by.definition.name}`));
  else if (isExternal(by, found)) notes.unsigned.push({ path: crt, caKey: by.key });
  else warnOfShortLivedCa(definition.name, by, desired, notes);
}

function warnOfShortLivedCa(made: string, ca: ValidatedCertificate, { now, node }: DesiredPki, { warnings }: Notes): void {
  const end = ca.chain[0]?.notAfter;
  const { validMs } = certificateParametersOf(node.cluster, now);
  // An expired CA is reported elsewhere.
  if (end === undefined || end < now || end.getTime() >= now.getTime() + validMs) return;
  const message = `the CA ${ca.crt} expires on ${formatRfc3339(end)}, before the certificate ${made}: after that date, both are invalid`;
  warnings.push({ code: 'PKI_AUTHORITY_ENDS_FIRST', message });
}

function validateServiceAccount(
  desired: DesiredPki,
  found: HostFileReader,
  external: boolean,
  { problems, unsigned }: Notes,
): ValidatedPki['serviceAccount'] {
  const { certificatesDir } = desired.node.cluster;
  const [key, pub] = [pkiPath(certificatesDir, 'sa', 'key'), pkiPath(certificatesDir, 'sa', 'pub')];
  const [keyText, pubText] = [found(key), found(pub)];
  const generatesKeys = desired.generates.certificate(SERVICE_ACCOUNT) && desired.joins !== true;
  if (keyText === null) {
    if (pubText !== null) problems.push(pkiKeyMissing(pub, key));
    else if (generatesKeys && external) unsigned.push({ path: key, caKey: pkiPath(certificatesDir, 'ca', 'key') });
    return generatesKeys ? 'make' : 'leave';
  }
  const read: KeyObject | null = readPrivateKey(keyText);
  if (read === null) problems.push(pkiNoKey(key, 'private key'));
  if (pubText === null) return generatesKeys ? 'publish' : 'leave';
  if (read !== null && !publicKeyFits(pubText, read))
    problems.push(pkiKeyMismatch(pub, key, `Remove ${pub} and rerun the command, which generates a new file`));
  return 'keep';
}

function validateKubeconfigs(
  desired: DesiredPki,
  found: HostFileReader,
  ca: ValidatedCertificate,
  notes: Notes,
): readonly ValidatedKubeconfig[] {
  return desired.kubeconfigs.map((definition) => {
    const path = `${desired.kubernetesDir}/${definition.file}`;
    const text = found(path);
    const base = { definition, path };
    if (text !== null) {
      if (isMade(ca)) notes.orphans.push({ path, ca: ca.crt });
      if (ca.chain.length === 0) return { ...base, action: 'keep' };
      const expected = { server: serverOf(definition, desired.node), user: definition.user(desired.node) };
      const verdict = validateKubeconfig({ ...base, text, expected, cas: ca.chain, caPath: ca.crt, now: desired.now, found });
      for (const problem of verdict.problems) {
        if (verdict.isForeign) noteForeign(notes, { path, ca: ca.crt, problem });
        else notes.problems.push(problem);
      }
      if (!verdict.isForeign) notes.belongs.add(ca.crt);
      notes.warnings.push(...verdict.warnings);
      return { ...base, action: 'keep' };
    }
    if (!desired.generates.kubeconfig(definition.name)) return { ...base, action: 'leave' };
    if (ca.action === 'leave') notes.problems.push(...(desired.joins === true ? [] : [pkiCaMissing(path, ca.crt, 'certs/ca')]));
    else if (isExternal(ca, found)) notes.unsigned.push({ path, caKey: ca.key });
    else warnOfShortLivedCa(`of ${definition.file}`, ca, desired, notes);
    return { ...base, action: 'make' };
  });
}
