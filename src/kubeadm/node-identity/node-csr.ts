import * as z from 'zod';
import type { KubeObject } from '../../kube/object.ts';
import { readObject } from '../../kube/read-object.ts';
import { NODE_USER_PREFIX, NODES_GROUP_NAME } from '../../kube/well-known.ts';
import { type CertificateRequest, readCertificateRequest } from '../../x509/certificate-request.ts';
import { printableName } from '../pki/san.ts';

export const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
export const SERVING_SIGNER = 'kubernetes.io/kubelet-serving';
export const CSRS = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' } as const;

/** The parts of a CertificateSigningRequest that matter for nodes. */
export interface NodeCsr {
  readonly name: string;
  readonly created: Date;
  readonly signerName: string;
  readonly username: string;
  readonly groups: readonly string[];
  readonly usages: readonly string[];
  readonly expirationSeconds: number | null;
  /** The latest decision of the approver and the signer. */
  readonly state: { readonly kind: 'pending' | 'approved' | 'issued' } | { readonly kind: 'denied' | 'failed'; readonly why: string };
  /** Null when the request cannot be parsed. */
  readonly request: CertificateRequest | null;
}

const text = z.string().nullish();
const texts = z.array(z.string()).nullish();
const SCHEMA = z.object({
  metadata: z.object({
    name: z.string(),
    creationTimestamp: text.refine((time) => !Number.isNaN(Date.parse(time ?? '1970-01-01T00:00:00Z')), 'must be a time'),
  }),
  spec: z.object({
    signerName: text,
    username: text,
    groups: texts,
    usages: texts,
    expirationSeconds: z.number().nullish(),
    request: z.string(),
  }),
  status: z
    .object({ conditions: z.array(z.object({ type: z.string(), reason: text, message: text })).nullish(), certificate: text })
    .nullish(),
});

/**
 * Reads a CertificateSigningRequest.
 * @throws AppError CLUSTER_ANSWER_INVALID when a member has the wrong type
 */
export function readNodeCsr(object: KubeObject): NodeCsr {
  const { metadata, spec, status } = readObject(SCHEMA, object);
  return {
    name: metadata.name,
    created: new Date(metadata.creationTimestamp ?? 0),
    signerName: spec.signerName ?? '',
    username: spec.username ?? '',
    groups: spec.groups ?? [],
    usages: spec.usages ?? [],
    expirationSeconds: spec.expirationSeconds ?? null,
    state: stateOf(status),
    request: readCertificateRequest(Buffer.from(spec.request, 'base64').toString('utf8')),
  };
}

function stateOf(status: z.infer<typeof SCHEMA>['status']): NodeCsr['state'] {
  const conditions = status?.conditions ?? [];
  const certificate = status?.certificate ?? '';
  const found = (type: string) => conditions.find((condition) => condition.type === type);
  const refused = found('Denied') ?? found('Failed');
  if (refused !== undefined) {
    const why = [refused.reason, refused.message].filter(Boolean).join(': ') || 'no reason given';
    return { kind: refused.type === 'Denied' ? 'denied' : 'failed', why };
  }
  if (certificate !== '') return { kind: 'issued' };
  return { kind: found('Approved') === undefined ? 'pending' : 'approved' };
}

/**
 * Why the kubelet signers of kube-controller-manager reject a CSR; null when they accept it. The approver
 * applies the same rules.
 * @see kubernetes/kubernetes pkg/apis/certificates/helpers.go (1.36)
 */
export function signerRejectionReason({ signerName, usages, request }: Pick<NodeCsr, 'signerName' | 'usages' | 'request'>): string | null {
  if (request === null) return 'it contains no readable request';
  const serving = signerName === SERVING_SIGNER;
  const { organizations, commonNames, dnsNames, ipAddresses, otherNames } = request;
  if (organizations.join(',') !== NODES_GROUP_NAME) return `its organization is ${listed(organizations) || 'empty'}, not only system:nodes`;
  if (commonNames.length !== 1 || !commonNames[0]?.startsWith(NODE_USER_PREFIX))
    return `its common name is ${listed(commonNames) || 'empty'}, not system:node:NAME`;
  const names = [...dnsNames, ...ipAddresses];
  if (otherNames.length > 0) return `it requests SANs that are neither DNS names nor IP addresses: ${listed(otherNames)}`;
  if (!serving && names.length > 0) return `it requests SANs (${listed(names)}), but a client certificate must have none`;
  if (serving && names.length === 0) return 'it requests no SANs, but a serving certificate needs at least one';
  const desired = ['digital signature', serving ? 'server auth' : 'client auth'];
  const odd = usages.filter((usage) => !desired.includes(usage) && usage !== 'key encipherment');
  const missing = desired.filter((usage) => !usages.includes(usage));
  if (odd.length > 0) return `it requests the usage ${listed(odd)}`;
  return missing.length > 0 ? `it does not request the usage ${missing.join(', ')}` : null;
}

/** At most eight of the texts, since the requester controls them. */
function listed(texts: readonly string[]): string {
  return [...texts.slice(0, 8).map((each) => each.split(' ').map(printableName).join(' ')), ...(texts.length > 8 ? ['...'] : [])].join(
    ', ',
  );
}

/** The name of the Node that a CSR is for; null when it is for none. */
export function nodeOfCsr({ request }: Pick<NodeCsr, 'request'>): string | null {
  return /^system:node:(.+)$/.exec(request?.commonNames[0] ?? '')?.[1] ?? null;
}
