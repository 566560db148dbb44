import type { Problem } from '../../base/errors.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import type { FileFact } from '../../host/facts/query.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import type { CertificateIssuer, Signer } from '../../x509/certificate-issuer.ts';
import { BACKDATE_MS, type CertificateSpec, type ExtendedUsage } from '../../x509/certificate-spec.ts';
import { describeCertificate } from '../../x509/describe-certificate.ts';
import { type CertificateContent, readCertificate } from '../../x509/read-certificate.ts';
import { type WriteFilesInput, writeFilesPhase } from '../phases/write-files.ts';
import { termsOf } from '../pki/certificate-list.ts';
import { pkiKeyMismatch, pkiNoControlPlane, pkiUnreadable, pkiUsagesUnknown } from '../pki/pki-problems.ts';
import { readPrivateKey } from '../pki/private-key.ts';
import { renewKubeconfig } from '../pki/renew-kubeconfig.ts';
import { type FoundRenewable, RENEWABLE_NAMES } from '../pki/renewable.ts';
import { inspectCertificates, type PkiSettings } from './inspect-certificates.ts';

export interface RenewCertsOptions extends PkiSettings {
  readonly issuer: CertificateIssuer;
  /** Only those that end within this time; null: all. */
  readonly withinMs: number | null;
}

export type RenewCertsInput = ReadonlyMap<string, WriteFilesInput>;

/**
 * Renews certificates of a control plane with the authorities on its host: another key, the same names. They are renewed whenever they end, unless `withinMs` says otherwise.
 * @param names of `RENEWABLE_NAMES`, in their order
 * @see kubeadm 1.36 certs renew
 */
export function renewCertsWorkflow(names: readonly string[]): Workflow<RenewCertsOptions, RenewCertsInput> {
  return {
    name: 'certs renew',
    phases: RENEWABLE_NAMES.filter((name) => names.includes(name)).map((name) =>
      writeFilesPhase(name, `Renew ${name}`, 'it is as it should be').select((input: RenewCertsInput) => input.get(name) ?? NOTHING),
    ),
    prepare: (context, options) => prepareRenewal(context, options, names),
  };
}

const NOTHING: WriteFilesInput = { files: [], directories: [], mayChown: true, skipped: 'this cluster has none' };

async function prepareRenewal(
  context: PhaseContext,
  options: RenewCertsOptions,
  names: readonly string[],
): Promise<Prepared<RenewCertsInput>> {
  const { cluster, facts, found, certificates, warnings } = await inspectCertificates(context, options);
  if (certificates.every(({ certificate }) => certificate === null)) {
    const crt = certificates.find(({ name }) => name === 'apiserver')?.crt ?? cluster.certificatesDir;
    return { input: new Map(), warnings, refusals: [{ host: context.host.name, ...pkiNoControlPlane(crt) }] };
  }
  const terms = termsOf(cluster, context.clock.now());
  const problems: Problem[] = [];
  const asked = certificates.filter(({ name }) => names.includes(name));
  const renewed = await Promise.all(
    asked.map(async (one): Promise<readonly [string, WriteFilesInput]> => {
      const skipped = reasonToSkip(one, options.withinMs, terms.now);
      if (skipped !== null) return [one.name, { ...NOTHING, skipped }];
      const planned = planRenewal(one, found);
      if ('problem' in planned) {
        problems.push(planned.problem);
        return [one.name, NOTHING];
      }
      const spec = renewedSpec(planned.certificate, terms);
      const keyPem = await options.issuer.generateKey(terms.keyAlgorithm);
      const pem = await options.issuer.issue(spec, keyPem, planned.signer);
      const files = renewedFiles(one, { pem, keyPem, caPem: planned.signer.certificatePem }, facts);
      return [one.name, { files, directories: [], mayChown: true }];
    }),
  );
  const changed = renewed.filter(([, { files }]) => files.length > 0).map(([name]) => name);
  return {
    input: new Map(renewed),
    warnings: [...warnings, ...restartWarnings(changed)],
    refusals: problems.map((problem) => ({ host: context.host.name, ...problem })),
  };
}

function reasonToSkip({ certificate, isExternal, authorityBase }: FoundRenewable, withinMs: number | null, now: Date): string | null {
  if (certificate === null) return 'it is missing';
  if (isExternal) return `its authority is external: there is no ${authorityBase}.key to sign it with`;
  if (withinMs === null || certificate === 'unreadable' || certificate.notAfter.getTime() - now.getTime() < withinMs) return null;
  return `it is good until ${formatRfc3339(certificate.notAfter)}`;
}

type OtherSigner = Exclude<Signer, 'self'>;
type PlannedRenewal = { readonly problem: Problem } | { readonly certificate: CertificateContent; readonly signer: OtherSigner };

function planRenewal(one: FoundRenewable, found: (path: string) => string | null): PlannedRenewal {
  const { certificate, crt, authorityBase } = one;
  if (certificate === null || certificate === 'unreadable') return { problem: pkiUnreadable(crt, 'certificate') };
  const [caPath, keyPath] = [`${authorityBase}.crt`, `${authorityBase}.key`];
  const authority = readCertificate(found(caPath) ?? '');
  const keyText = new Secret(found(keyPath) ?? '');
  const key = readPrivateKey(keyText);
  if (authority === null || !authority.isAuthority) return { problem: pkiUnreadable(caPath, 'certificate') };
  if (key === null) return { problem: pkiUnreadable(keyPath, 'private key') };
  if (!authority.x509.checkPrivateKey(key)) return { problem: pkiKeyMismatch(caPath, keyPath, 'Put the key of this authority there') };
  const strange = certificate.extKeyUsage.filter((usage) => USAGES[usage] === undefined);
  if (strange.length > 0 || certificate.extKeyUsage.length === 0) return { problem: pkiUsagesUnknown(crt, strange) };
  return { certificate, signer: { certificatePem: authority.pem, keyPem: keyText } };
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
    isAuthority: false,
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
    ...{ path, mode, whyOther: 'it is renewed' },
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

/** Who goes on with an old certificate until it is started again. */
const USERS: readonly (readonly [component: string, certificates: RegExp])[] = [
  ['etcd', /^etcd-/],
  ['kube-apiserver', /^(?:apiserver|front-proxy-client)/],
  ['kube-controller-manager', /^controller-manager\.conf$/],
  ['kube-scheduler', /^scheduler\.conf$/],
];

function restartWarnings(renewed: readonly string[]): readonly Warning[] {
  const users = USERS.filter(([, pattern]) => renewed.some((name) => pattern.test(name))).map(([component]) => component);
  if (users.length === 0) return [];
  const its = users.length === 1 ? 'its manifest' : 'the manifest of each';
  const message = `${users.join(', ')} must be started again to use what is renewed: move ${its} out of /etc/kubernetes/manifests, wait until its pod is gone, and move it back`;
  return [{ code: 'RESTART_NEEDED', message }];
}
