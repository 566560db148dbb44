import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { isNodeReady, nodeIssues } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { Finding } from '../preflight/check.ts';
import type { CheckName } from '../preflight/check-names.ts';
import type { ObservedNode } from './observe-node.ts';

/** What join knows about the cluster besides the node's own host. */
export interface JoinTarget {
  readonly server: string;
  readonly caPem: string;
  readonly caCertPath: string;
  /** The Node that has the name of the one that joins. */
  readonly namesake: KubeObject | null;
  /** The credentials may ask for a certificate. */
  readonly mayBootstrap: boolean;
  /** Its name may be taken when it is not Ready. */
  readonly takeOver: boolean;
}

const RESET_FIRST = 'Run reset on the host first, if it is to leave the cluster it is in';

/**
 * What kubeadm's FileAvailable checks are for, without their trap: files of an earlier run of the same join are no obstacle, files of another cluster are.
 * And its refusal to take the name of a Node that works: two hosts of one name (clones) would fight over it.
 * @see kubeadm 1.36 preflight: FileAvailable--etc-kubernetes-kubelet.conf, ...-pki-ca.crt; join phase kubelet-start
 */
export function joinFindings({ facts, registration }: ObservedNode, target: JoinTarget): readonly Finding[] {
  const { identity } = facts;
  const { server, caPem, caCertPath, namesake, takeOver, mayBootstrap } = target;
  const findings: Finding[] = [];
  const refuse = (id: CheckName, message: string, hint: string): void => void findings.push({ id, severity: 'error', message, hint });
  if (identity.state === 'usable' && identity.server !== null && !sameServer(identity.server, server)) {
    const message = `/etc/kubernetes/kubelet.conf is there and belongs to ${identity.server}, not to ${server}`;
    refuse('FileAvailable--etc-kubernetes-kubelet.conf', message, RESET_FIRST);
  }
  const ca = facts.kubernetesFiles.get(caCertPath)?.content;
  if (ca !== undefined && ca.trim() !== caPem.trim())
    refuse(`FileAvailable-${caCertPath.replaceAll('/', '-')}`, `${caCertPath} is there and is not the CA of ${server}`, RESET_FIRST);
  const isItself = identity.state === 'unusable' && identity.commonName === `system:node:${registration.name}`;
  const renew = isItself ? `${identity.why}: certs renew-kubelet gets it another. ` : '';
  if (identity.state !== 'usable' && namesake !== null && !isNodeReady(namesake) && !takeOver) {
    const hint = `${renew}If that is this host, or one that is gone, add --take-over; else give this one another name with --node-name`;
    const reported = nodeIssues(namesake).join('; ');
    refuse('NodeExists', `the cluster has a node ${registration.name} already, not Ready (${reported})`, hint);
  }
  if (identity.state !== 'usable' && namesake !== null && isNodeReady(namesake)) {
    const hint = `${renew}Give this one another name with --node-name, or, if that node is gone, kubectl delete node ${registration.name}`;
    refuse('NodeExists', `the cluster has a node ${registration.name} already, and it is Ready`, hint);
  }
  if (identity.state !== 'usable' && !mayBootstrap) {
    const message = 'the credentials may not create certificate signing requests: the kubelet would get no certificate by them';
    const hint = "Bind the ClusterRole system:node-bootstrapper to the token's groups: init phase bootstrap-token does it for kubeadm's";
    findings.push({ id: 'BootstrapRBAC', severity: 'warning', message: `${message}. ${hint}`, hint });
  }
  return findings;
}

function sameServer(a: string, b: string): boolean {
  return trimTrailing(a, '/').toLowerCase() === trimTrailing(b, '/').toLowerCase();
}
