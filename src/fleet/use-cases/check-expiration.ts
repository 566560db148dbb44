import { AppError, type Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { expirationInfo } from '../../kubeadm/pki/expiration-info.ts';
import { pkiUnreadable } from '../../kubeadm/pki/pki-problems.ts';
import { type OpenedPkiSettings, openPkiSettings, type PkiRequest } from '../../kubeadm/use-cases/pki-settings.ts';
import { inspectCertificates } from '../../kubeadm/workflows/certificates/inspect-certificates.ts';
import type { HostTarget } from '../host-target.ts';
import { type NodeCommandPorts, onHost } from '../ports.ts';
import type { HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';

export interface CheckExpirationRequest extends PkiRequest {
  readonly hosts: HostsRequest;
}

/**
 * Reads when the control plane certificates of hosts expire. A failed host does not stop the others.
 * @returns `hasReadCluster`: whether kubeadm-config of the cluster was read; null: it was not requested
 * @throws AppError: problems of the configuration; the errors of `openPkiSettings`
 */
export async function checkExpiration(services: NodeCommandPorts, request: CheckExpirationRequest, reporter: Reporter) {
  const opened = await openPkiSettings(services, request, reporter);
  for (const { code, message } of opened.warnings) reporter.report({ level: 'warning', code, message });
  const reports: Awaited<ReturnType<typeof checkHost>>[] = [];
  const problems: Problem[] = [];
  try {
    for (const target of await readHostTargets(services, request.hosts)) {
      try {
        reports.push(await checkHost(services, target, opened));
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        problems.push(...error.problems);
      }
    }
    return { reports, problems };
  } finally {
    await opened.cluster?.close();
  }
}

async function checkHost(services: NodeCommandPorts, target: HostTarget, { settings, cluster, clusterOf }: OpenedPkiSettings) {
  return onHost(services, target, async (host) => {
    const own = cluster ?? (await clusterOf(host));
    try {
      const existing = await inspectCertificates({ host, cluster: own, signal: services.signal }, settings);
      const damaged = [...existing.certificates, ...existing.cas].flatMap(({ crt, certificate }) =>
        typeof certificate === 'string' ? [{ ...pkiUnreadable(crt, certificate), host: host.name }] : [],
      );
      if (damaged.length > 0) throw new AppError(damaged);
      return { name: host.name, info: expirationInfo(existing, services.clock.now()), hasReadCluster: existing.hasReadCluster };
    } finally {
      if (cluster === null) await own?.close();
    }
  });
}
