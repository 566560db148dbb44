import type { Problem } from '../../../base/errors.ts';
import type { ClusterContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import type { CertificateIssuer } from '../../../x509/certificate-issuer.ts';
import type { DefaultedCluster } from '../../config/defaults.ts';
import { CONTROLLER_CONF_NAME } from '../../control-plane/controller-unit.ts';
import type { StaticPodName } from '../../control-plane/paths.ts';
import { inspectCertificates } from '../certificates/inspect-certificates.ts';
import { reasonToSkip, renewCertificate } from '../certificates/renew-certs.ts';

/**
 * The certificates that are renewed with each component.
 * @see kubeadm 1.36 phases/upgrade/staticpods.go renewCertsByComponent
 */
export const COMPONENT_CERTIFICATES: Readonly<Record<StaticPodName, readonly string[]>> = {
  etcd: ['etcd-server', 'etcd-peer', 'etcd-healthcheck-client'],
  'kube-apiserver': ['apiserver', 'apiserver-kubelet-client', 'front-proxy-client', 'apiserver-etcd-client'],
  'kube-controller-manager': ['controller-manager.conf'],
  'kube-scheduler': ['scheduler.conf'],
};

/** Renewed after all components. */
export const OTHER_KUBECONFIGS: readonly string[] = ['admin.conf', 'super-admin.conf', CONTROLLER_CONF_NAME];

/** Renews the certificates of a control plane host, for the phases to write. */
export async function renewedCertificates(
  context: ClusterContext,
  options: { readonly certificateRenewal: boolean; readonly issuer: CertificateIssuer; readonly cluster: DefaultedCluster },
): Promise<{
  /** The files of the renewed certificates; those of an external CA are omitted. */
  readonly of: (names: readonly string[]) => readonly DesiredFile[];
  /** The existing content of a certificate, key or kubeconfig; null: it does not exist. */
  readonly textAt: (path: string) => string | null;
  readonly externalCA: boolean;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Warning[];
}> {
  const { certificateRenewal, issuer, cluster } = options;
  const now = context.clock.now();
  const { facts, found, certificates, cas } = await inspectCertificates(context, { cluster, certificatesDir: null });
  const names = [...Object.values(COMPONENT_CERTIFICATES).flat(), ...OTHER_KUBECONFIGS];
  const files = new Map<string, readonly DesiredFile[]>();
  const problems: Problem[] = [];
  const warnings: Warning[] = [];
  const renewable = certificateRenewal ? certificates.filter(({ name }) => names.includes(name)) : [];
  await Promise.all(
    renewable.map(async (one) => {
      const skipped = reasonToSkip(one, null, now);
      if (one.isExternal && skipped !== null)
        warnings.push({ code: 'CERTIFICATE_NOT_RENEWED', message: `${one.name} is not renewed: ${skipped}` });
      if (skipped !== null) return;
      const renewed = await renewCertificate(one, { cluster, found, facts, issuer, now });
      if ('problem' in renewed) problems.push({ host: context.host.name, ...renewed.problem });
      else files.set(one.name, renewed.files);
    }),
  );
  return {
    of: (asked) => asked.flatMap((name) => files.get(name) ?? []),
    textAt: found,
    externalCA: cas.some(({ name, isExternal }) => name === 'ca' && isExternal),
    problems,
    warnings,
  };
}
