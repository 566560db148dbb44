import type { KubeObject } from '../../../src/kube/object.ts';
import { NODE_USER_PREFIX, NODES_GROUP_NAME } from '../../../src/kube/well-known.ts';
import { memberOf, textOf, textsOf } from '../members.ts';
import { type ParsedRequest, parseCertificateRequest } from '../pki.ts';

export const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
export const SERVING_SIGNER = 'kubernetes.io/kubelet-serving';

/** A CertificateSigningRequest with its parsed CSR. */
export interface ParsedCsr {
  readonly signerName: string;
  readonly usages: readonly string[];
  readonly expirationSeconds: number | null;
  readonly request: ParsedRequest;
}

/** Null when `spec.request` is invalid. */
export function parseCsr(object: KubeObject): ParsedCsr | null {
  const spec = memberOf(object, 'spec');
  const seconds = spec.expirationSeconds;
  try {
    const request = parseCertificateRequest(Buffer.from(textOf(spec, 'request'), 'base64').toString('utf8'));
    return {
      signerName: textOf(spec, 'signerName'),
      usages: textsOf(spec, 'usages'),
      expirationSeconds: typeof seconds === 'number' ? seconds : null,
      request,
    };
  } catch {
    return null;
  }
}

/**
 * Why the kubelet signers reject a CSR; null when they accept it.
 * @see kubernetes/kubernetes pkg/apis/certificates/helpers.go (1.36)
 */
export function requestProblem({ signerName, usages, request }: ParsedCsr): string | null {
  const serving = signerName === SERVING_SIGNER;
  const { organizations, commonName, dnsNames, ipAddresses, otherNames } = request;
  if (organizations.length !== 1 || organizations[0] !== NODES_GROUP_NAME) return 'subject organization is not system:nodes';
  if (serving && dnsNames.length + ipAddresses.length === 0) return 'DNS or IP subjectAltName is required';
  if (!serving && dnsNames.length > 0) return 'DNS subjectAltNames are not allowed';
  if (!serving && ipAddresses.length > 0) return 'IP subjectAltNames are not allowed';
  if (otherNames.length > 0) return 'Email and URI subjectAltNames are not allowed';
  if (!commonName.startsWith(NODE_USER_PREFIX)) return 'subject common name does not begin with system:node:';
  const desired = ['digital signature', 'key encipherment', serving ? 'server auth' : 'client auth'];
  const given = new Set(usages);
  const fits =
    desired.every((usage) => usage === 'key encipherment' || given.has(usage)) && [...given].every((usage) => desired.includes(usage));
  return fits ? null : `usages did not match [${desired.join(' ')}]`;
}
