import type { Problem } from '../core/errors.ts';
import { type Finding, judgeFindings } from '../core/preflight/check.ts';
import type { JoinOptions } from './join.ts';
import type { ObservedNode } from './prepare-node.ts';

/**
 * What kubeadm's FileAvailable checks are for, without their trap: files of an earlier run of the same join are no obstacle, files of another cluster are.
 * @see kubeadm 1.36 preflight: FileAvailable--etc-kubernetes-kubelet.conf, ...-pki-ca.crt
 */
export function joinFindings(host: string, { facts }: ObservedNode, options: JoinOptions): readonly Problem[] {
  const { identity } = facts;
  const findings: Finding[] = [];
  const mend = 'Run reset on the host first, if it is to leave the cluster it is in';
  if (identity.state === 'usable' && identity.server !== null && !sameServer(identity.server, options.apiServer.server)) {
    const message = `/etc/kubernetes/kubelet.conf is there and belongs to ${identity.server}, not to ${options.apiServer.server}`;
    findings.push({ id: 'FileAvailable--etc-kubernetes-kubelet.conf', severity: 'error', message, mend });
  }
  const ca = facts.kubernetesFiles.get(options.caCertPath)?.content;
  if (ca !== undefined && ca.trim() !== options.apiServer.caPem.trim()) {
    const id = `FileAvailable-${options.caCertPath.replaceAll('/', '-')}`;
    findings.push({
      id,
      severity: 'error',
      message: `${options.caCertPath} is there and is not the CA of ${options.apiServer.server}`,
      mend,
    });
  }
  return judgeFindings(findings, options.ignorePreflightErrors, host).errors;
}

function sameServer(a: string, b: string): boolean {
  return a.replace(/\/+$/, '').toLowerCase() === b.replace(/\/+$/, '').toLowerCase();
}
