import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { itemsOf, memberOf, textOf } from '../members.ts';
import { CONTROLLER, type ControllerContext, forEachWritten, typeOf } from './controller.ts';
import { isApproved } from './csr-approver.ts';
import { CLIENT_SIGNER, type ParsedCsr, parseCsr, requestProblem, SERVING_SIGNER } from './csr-request.ts';

const CSRS = typeOf('certificates.k8s.io/v1', 'CertificateSigningRequest');
const LONGEST_SECONDS = 365 * 24 * 3600;
const SHORTEST_SECONDS = 600;
const BACKDATE_MS = 5 * 60 * 1000;

/**
 * Signs approved CSRs of kubelets, for client and for serving certificates.
 * @see kubernetes/kubernetes pkg/controller/certificates/signer/signer.go (1.36)
 */
export function startCsrSigner(context: ControllerContext): void {
  forEachWritten(context, CSRS, async (object) => {
    if (!isApproved(object) || textOf(memberOf(object, 'status'), 'certificate') !== '') return;
    const signerName = textOf(memberOf(object, 'spec'), 'signerName');
    if (signerName !== CLIENT_SIGNER && signerName !== SERVING_SIGNER) return;
    const csr = parseCsr(object);
    const problem =
      csr === null
        ? 'the request can not be parsed'
        : (requestProblem(csr) ?? ((await csr.request.verify()) ? null : 'the signature is not valid'));
    if (csr === null || problem !== null) return writeStatus(context, object, failed(object, problem ?? ''));
    const certificate = await sign(context, csr);
    writeStatus(context, object, { certificate: Buffer.from(certificate, 'utf8').toString('base64') });
  });
}

function sign({ ca, clock }: ControllerContext, { request, usages, expirationSeconds }: ParsedCsr): Promise<string> {
  const seconds = Math.min(Math.max(expirationSeconds ?? LONGEST_SECONDS, SHORTEST_SECONDS), LONGEST_SECONDS);
  const now = clock.now().getTime();
  return ca.signRequest(request, usages, {
    notBefore: new Date(now - BACKDATE_MS),
    notAfter: new Date(now - BACKDATE_MS + seconds * 1000),
  });
}

function failed(object: KubeObject, message: string): JsonObject {
  const conditions = itemsOf(memberOf(object, 'status'), 'conditions');
  return { conditions: [...conditions, { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message }] };
}

function writeStatus({ registry }: ControllerContext, object: KubeObject, changes: JsonObject): void {
  const at = { namespace: '', name: object.metadata.name };
  const status = { ...memberOf(object, 'status'), ...changes };
  registry.update(CSRS, at, { ...object, status }, { user: CONTROLLER, subresource: 'status' });
}
