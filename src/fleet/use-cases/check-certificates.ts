import { AppError, type Problem } from '../../base/errors.ts';
import { nodeOfSubject } from '../../kubeadm/node-identity/node-identity.ts';
import { RENEWABLE_NAMES } from '../../kubeadm/pki/renewable.ts';
import { type CertificateVerdict, validateCertificates, validateControlPlane } from '../../kubeadm/pki/validate-certificates.ts';
import { inspectCertificates } from '../../kubeadm/workflows/certificates/inspect-certificates.ts';
import { observeCertificates } from '../../kubelet/effective/observe-certificates.ts';
import { readCertificate } from '../../x509/read-certificate.ts';
import type { HostTarget } from '../host-target.ts';
import { type NodeCommandPorts, onHost } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';

export interface HostCertificates {
  readonly name: string;
  /** The Node that its kubelet has registered; null: unknown. */
  readonly node: string | null;
  readonly certificates: readonly CertificateVerdict[];
  /** An issue that concerns more than one certificate; null: none. */
  readonly issue: string | null;
}

export interface CheckCertificatesRequest {
  readonly hosts: HostsRequest;
  /** Certificates that expire within this time are reported too. */
  readonly withinMs: number;
}

/**
 * Checks the certificates of hosts.
 * @returns the reports of the reachable hosts, and the problems of all hosts
 */
export async function checkCertificates(
  services: NodeCommandPorts,
  { hosts, withinMs }: CheckCertificatesRequest,
): Promise<{ readonly reports: readonly HostCertificates[]; readonly problems: readonly Problem[] }> {
  const reports: HostCertificates[] = [];
  const failures: Problem[] = [];
  for (const target of await readHostTargets(services, hosts)) {
    try {
      reports.push(await checkHost(services, target, withinMs));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      failures.push(...error.problems);
    }
  }
  return { reports, problems: [...reports.flatMap(problemsOf), ...failures] };
}

async function checkHost(services: NodeCommandPorts, target: HostTarget, withinMs: number): Promise<HostCertificates> {
  return onHost(services, target, async (host) => {
    const found = await observeCertificates(host, services.signal);
    const controlPlane = await inspectCertificates(
      { host, cluster: null, signal: services.signal },
      { cluster: null, certificatesDir: null },
    );
    const options = { withinMs, now: found.now ?? services.clock.now() };
    const certificates = [...validateCertificates(found, options), ...validateControlPlane(controlPlane, options)];
    const client = readCertificate(found.certificates.find(({ role }) => role === 'client')?.pem ?? '');
    return { name: host.name, node: client === null ? null : nodeOfSubject(client), certificates, issue: found.issue };
  });
}

function problemsOf({ name, certificates, issue }: HostCertificates): readonly Problem[] {
  const host = name;
  const bad = certificates.flatMap((one) =>
    one.state !== 'error'
      ? []
      : one.notes.map((note): Problem => {
          return {
            host,
            code: 'CERTIFICATE_BAD',
            message: `${one.role} certificate in ${one.path}: ${note}`,
            hint: hintOf(one.role, name),
          };
        }),
  );
  return issue === null ? bad : [...bad, { host, code: 'CERTIFICATE_BAD', message: issue }];
}

function hintOf(role: string, host: string): string | undefined {
  if (role === 'client') return `Renew the certificate: kubeletadm certs renew-kubelet --host ${host}`;
  return RENEWABLE_NAMES.includes(role) ? `Renew the certificate: kubeletadm certs renew ${role} --host ${host}` : undefined;
}
