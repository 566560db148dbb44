import type { Problem } from '../../../base/errors.ts';
import { formatRfc3339 } from '../../../base/text/rfc3339.ts';
import { Secret, SensitiveText } from '../../../base/text/secret.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import type { Prepared, Workflow } from '../../../host/run-workflow.ts';
import type { CertificateIssuer, Signer } from '../../../x509/certificate-issuer.ts';
import { BACKDATE_MS, type CertificateSpec, type ExtendedUsage } from '../../../x509/certificate-issuer.ts';
import { describeCertificate, formatName } from '../../../x509/describe-certificate.ts';
import { readPrivateKey } from '../../../x509/private-key.ts';
import { type CertificateContent, certificateOrWhy } from '../../../x509/read-certificate.ts';
import { CONTROLLER_CONF_NAME } from '../../control-plane/controller-unit.ts';
import type { StaticPodName } from '../../control-plane/paths.ts';
import { type RestartStaticPodInput, restartStaticPod } from '../../phases/restart-static-pod.ts';
import { runController } from '../../phases/run-controller.ts';
import { type WriteFilesInput, writeFilesPhase } from '../../phases/write-files.ts';
import { certificateParametersOf } from '../../pki/certificate-list.ts';
import { renewKubeconfig } from '../../pki/kubeconfig-list.ts';
import { pkiKeyMismatch, pkiNoControlPlane, pkiNoKey, pkiNotCa, pkiUnreadable, pkiUsagesUnknown } from '../../pki/pki-problems.ts';
import { type FoundRenewable, RENEWABLE_NAMES } from '../../pki/renewable.ts';
import { UPGRADE_ORDER } from '../../upgrade/upgrade-record.ts';
import { type ExistingCertificates, inspectCertificates, type PkiSettings } from './inspect-certificates.ts';
import { certificatesOfComponent, NO_RESTART, restartsOf } from './restart-components.ts';

interface RenewCertsOptions extends PkiSettings {
  readonly issuer: CertificateIssuer;
  /** Renews only certificates that expire within this time; null: all. */
  readonly withinMs: number | null;
  /** Called on each host with its certificates before the renewal. */
  readonly onInspected?: (existing: ExistingCertificates) => void;
}

interface RenewCertsInput {
  readonly files: ReadonlyMap<string, WriteFilesInput>;
  readonly restart: (component: StaticPodName) => RestartStaticPodInput;
}

/**
 * Renews certificates of a control plane with the CAs on its host: new key, same names. Renews every certificate,
 * unless `withinMs` limits the renewal to certificates that expire soon.
 * @param names of `RENEWABLE_NAMES`, in their order
 * @param options.restarts also restart the static Pods that use the renewed certificates, one after the other
 * @see kubeadm 1.36 certs renew
 */
export function renewCertsWorkflow(names: readonly string[], { restarts = false } = {}): Workflow<RenewCertsOptions, RenewCertsInput> {
  return {
    name: 'certs renew',
    phases: [
      ...RENEWABLE_NAMES.filter((name) => names.includes(name)).map((name) =>
        writeFilesPhase(name, `Renew ${name}`, 'unchanged').select(
          (input: RenewCertsInput) => input.files.get(name) ?? (name === CONTROLLER_CONF_NAME && names.length > 1 ? NOT_NAMED : NOTHING),
        ),
      ),
      ...(restarts ? UPGRADE_ORDER : []).map((component) =>
        restartStaticPod(component).select((input: RenewCertsInput) => input.restart(component)),
      ),
      // Also without --restart: no component needs the controller.
      ...(names.includes(CONTROLLER_CONF_NAME) ? [restartController] : []),
    ],
    prepare: (context, options) => prepareRenewal(context, options, { names, restarts }),
  };
}

/** Few control planes run the controller of rollouts. */
const NOT_NAMED: WriteFilesInput = { files: [], directories: [], mayChown: true, skipped: null };

const NOTHING: WriteFilesInput = { ...NOT_NAMED, skipped: 'the cluster does not use this certificate' };

const restartController = runController(
  'restart/kubeletadm-controller',
  'Restart the controller of rollouts, if it runs on the host',
).select((input: RenewCertsInput) => ({ unit: null, isRenewed: (input.files.get(CONTROLLER_CONF_NAME) ?? NOTHING).files.length > 0 }));

async function prepareRenewal(
  context: PhaseContext,
  options: RenewCertsOptions,
  { names, restarts }: { readonly names: readonly string[]; readonly restarts: boolean },
): Promise<Prepared<RenewCertsInput>> {
  const existing = await inspectCertificates(context, options);
  options.onInspected?.(existing);
  const { cluster, facts, found, certificates, warnings } = existing;
  if (certificates.every(({ certificate }) => certificate === null)) {
    const crt = certificates.find(({ name }) => name === 'apiserver')?.crt ?? cluster.certificatesDir;
    return {
      input: { files: new Map(), restart: NO_RESTART },
      warnings,
      refusals: [{ host: context.host.name, ...pkiNoControlPlane(crt) }],
    };
  }
  const { now } = certificateParametersOf(cluster, context.clock.now());
  const problems: Problem[] = [];
  const asked = certificates.filter(({ name }) => names.includes(name));
  const renewed = await Promise.all(
    asked.map(async (one): Promise<readonly [string, WriteFilesInput]> => {
      const skipped = reasonToSkip(one, options.withinMs, now);
      if (skipped !== null) return [one.name, { ...NOTHING, skipped }];
      const planned = await renewCertificate(one, { cluster, found, facts, issuer: options.issuer, now });
      if ('problem' in planned) {
        problems.push(planned.problem);
        return [one.name, NOTHING];
      }
      return [one.name, { files: planned.files, directories: [], mayChown: true }];
    }),
  );
  const changed = renewed.filter(([, { files }]) => files.length > 0).map(([name]) => name);
  const restart = restarts ? await restartsOf(context, changed) : { of: NO_RESTART, problems: [] };
  return {
    input: { files: new Map(renewed), restart: restart.of },
    warnings: [...warnings, ...(restarts ? [] : restartWarnings(changed))],
    refusals: [...problems, ...restart.problems].map((problem) => ({ host: context.host.name, ...problem })),
  };
}

/** Why a certificate is not renewed, as a clause; null: it is. @param withinMs null: whenever it expires */
export function reasonToSkip({ certificate, isExternal, caBase }: FoundRenewable, withinMs: number | null, now: Date): string | null {
  if (certificate === null) return 'the certificate does not exist';
  if (isExternal) return `its CA is external: the CA key ${caBase}.key does not exist`;
  if (withinMs === null || typeof certificate === 'string' || certificate.notAfter.getTime() - now.getTime() < withinMs) return null;
  return `the certificate is valid until ${formatRfc3339(certificate.notAfter)}`;
}

interface RenewWith extends Pick<ExistingCertificates, 'cluster' | 'found' | 'facts'> {
  readonly issuer: CertificateIssuer;
  readonly now: Date;
}

/**
 * Renews one certificate with its CA on the host: new key, same subject and SANs.
 * @returns its files, or the problem of the certificate or its CA
 */
export async function renewCertificate(
  one: FoundRenewable,
  { cluster, found, facts, issuer, now }: RenewWith,
): Promise<{ readonly problem: Problem } | { readonly files: readonly DesiredFile[] }> {
  const parameters = certificateParametersOf(cluster, now);
  const planned = planRenewal(one, found);
  if ('problem' in planned) return planned;
  const keyPem = await issuer.generateKey(parameters.keyAlgorithm);
  const pem = await issuer.issue(renewedSpec(planned.certificate, parameters), keyPem, planned.signer);
  return { files: renewedFiles(one, { pem, keyPem, caPem: planned.signer.certificatePem }, facts) };
}

function planRenewal(
  one: FoundRenewable,
  found: (path: string) => string | null,
): { readonly problem: Problem } | { readonly certificate: CertificateContent; readonly signer: Exclude<Signer, 'self'> } {
  const { certificate, crt, caBase } = one;
  if (certificate === null || typeof certificate === 'string') return { problem: pkiUnreadable(crt, certificate ?? 'does not exist') };
  const [caPath, keyPath] = [`${caBase}.crt`, `${caBase}.key`];
  const ca = certificateOrWhy(found(caPath) ?? '');
  const keyText = new Secret(found(keyPath) ?? '');
  const key = readPrivateKey(keyText);
  if (typeof ca === 'string') return { problem: pkiUnreadable(caPath, ca) };
  if (!ca.isCa) return { problem: pkiNotCa(caPath, formatName(ca.subject)) };
  if (key === null) return { problem: pkiNoKey(keyPath, 'private key') };
  if (!ca.x509.checkPrivateKey(key)) return { problem: pkiKeyMismatch(caPath, keyPath, 'Replace the key with that of this CA') };
  const strange = certificate.extKeyUsage.filter((usage) => USAGES[usage] === undefined);
  if (strange.length > 0 || certificate.extKeyUsage.length === 0) return { problem: pkiUsagesUnknown(crt, strange) };
  return { certificate, signer: { certificatePem: ca.pem, keyPem: keyText } };
}

const USAGES: Readonly<Record<string, ExtendedUsage>> = {
  'TLS Web Server Authentication': 'serverAuth',
  'TLS Web Client Authentication': 'clientAuth',
};

function renewedSpec(certificate: CertificateContent, { now, validMs }: { readonly now: Date; readonly validMs: number }): CertificateSpec {
  const named = (type: string): readonly string[] => certificate.subject.filter((part) => part.type === type).map(({ value }) => value);
  return {
    commonName: named('CN')[0] ?? '',
    organizations: named('O'),
    dnsNames: certificate.dnsNames,
    ipAddresses: certificate.ipAddresses,
    usages: certificate.extKeyUsage.flatMap((usage) => USAGES[usage] ?? []),
    isCa: false,
    notBefore: new Date(now.getTime() - BACKDATE_MS),
    notAfter: new Date(now.getTime() + validMs),
  };
}

function renewedFiles(
  { crt, key }: FoundRenewable,
  { pem, keyPem, caPem }: { readonly pem: string; readonly keyPem: Secret; readonly caPem: string },
  facts: ReadonlyMap<string, FileFact | null>,
): readonly DesiredFile[] {
  const certificate = describeCertificate(pem);
  const file = (path: string, mode: number): Pick<DesiredFile, 'path' | 'mode' | 'owner' | 'whyOther'> => ({
    ...{ path, mode, whyOther: 'renewed' },
    owner: facts.get(path)?.owner ?? 'root:root',
  });
  if (key !== null) {
    return [
      { ...file(key, 0o600), content: new SensitiveText([keyPem]), summary: {} },
      { ...file(crt, 0o644), content: pem, summary: { certificate } },
    ];
  }
  const content = renewKubeconfig(facts.get(crt)?.content ?? '', crt, { certificatePem: pem, keyPem, caPem });
  return [{ ...file(crt, 0o600), content, summary: { certificate } }];
}

/** Warning: components use renewed certificates only after a restart. */
export const RESTART_NEEDED = 'RESTART_NEEDED';

/** Why the components must be restarted by hand. */
function restartWarnings(renewed: readonly string[]): readonly Warning[] {
  const users = UPGRADE_ORDER.filter((component) => certificatesOfComponent(component, renewed).length > 0);
  if (users.length === 0) return [];
  const message = `restart ${users.join(', ')} to use the renewed certificates: rerun the command with --restart`;
  return [{ code: RESTART_NEEDED, message }];
}
