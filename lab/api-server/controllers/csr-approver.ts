import type { KubeObject } from '../../../src/kube/object.ts';
import { userOf } from '../authenticate.ts';
import { authorize } from '../authorize.ts';
import { itemsOf, memberOf, textOf, textsOf } from '../members.ts';
import { CONTROLLER, type ControllerContext, forEachWritten, typeOf } from './controller.ts';
import { CLIENT_SIGNER, parseCsr, requestProblem } from './csr-request.ts';

const CSRS = typeOf('certificates.k8s.io/v1', 'CertificateSigningRequest');

/**
 * Approves client certificates of kubelets for permitted requesters: `selfnodeclient` for the node's own,
 * `nodeclient` for any node's.
 * @see kubernetes/kubernetes pkg/controller/certificates/approver/sarapprove.go (1.36)
 */
export function startCsrApprover(context: ControllerContext): void {
  forEachWritten(context, CSRS, (object) => {
    if (textOf(memberOf(object, 'status'), 'certificate') !== '' || isDecided(object)) return;
    const csr = parseCsr(object);
    if (csr === null || csr.signerName !== CLIENT_SIGNER || requestProblem(csr) !== null) return;
    const own = textOf(memberOf(object, 'spec'), 'username') === csr.request.commonName;
    if (own && mayCreate(context, object, 'selfnodeclient')) {
      approve(context, object, 'Auto approving self kubelet client certificate after SubjectAccessReview.');
    } else if (mayCreate(context, object, 'nodeclient')) {
      approve(context, object, 'Auto approving kubelet client certificate after SubjectAccessReview.');
    }
  });
}

/** Whether a CSR was approved. */
export function isApproved(object: KubeObject): boolean {
  return hasCondition(object, 'Approved') && !hasCondition(object, 'Denied') && !hasCondition(object, 'Failed');
}

function isDecided(object: KubeObject): boolean {
  return hasCondition(object, 'Approved') || hasCondition(object, 'Denied');
}

function hasCondition(object: KubeObject, type: string): boolean {
  return itemsOf(memberOf(object, 'status'), 'conditions').some((condition) => condition.type === type);
}

function mayCreate({ store }: ControllerContext, object: KubeObject, subresource: string): boolean {
  const spec = memberOf(object, 'spec');
  const user = { ...userOf(textOf(spec, 'username'), []), groups: textsOf(spec, 'groups') };
  const [group, resource] = ['certificates.k8s.io', 'certificatesigningrequests'];
  const query = new URLSearchParams();
  const asked = {
    kind: 'resource',
    path: '',
    verb: 'create',
    group,
    version: '*',
    resource,
    subresource,
    namespace: '',
    name: '',
    named: false,
    query,
  } as const;
  return authorize(store, user, asked).allowed;
}

function approve({ registry }: ControllerContext, object: KubeObject, message: string): void {
  const status = memberOf(object, 'status');
  const conditions = [...itemsOf(status, 'conditions'), { type: 'Approved', status: 'True', reason: 'AutoApproved', message }];
  const at = { namespace: '', name: object.metadata.name };
  registry.update(CSRS, at, { ...object, status: { ...status, conditions } }, { user: CONTROLLER, subresource: 'approval' });
}
