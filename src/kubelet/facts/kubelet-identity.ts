import { entryOf, parseSource, type SourceNode } from '../../codec/source.ts';
import { defineFact } from '../../host/facts/fact.ts';
import type { ParseText } from '../../host/facts/parse-text.ts';
import { KUBELET_CLIENT_PEM, KUBELET_CONF } from '../../kube/well-known.ts';
import { readCertificateHead, whyNoCertificate } from '../../x509/read-certificate.ts';

/** The credentials of a kubelet. `why` is the reason why they are unusable. */
export type ClientIdentity =
  | { readonly state: 'missing' }
  | {
      readonly state: 'unusable';
      readonly why: string;
      /** Common name of an expired certificate. */
      readonly commonName?: string | null;
    }
  | {
      readonly state: 'usable';
      /** File of the certificate. */
      readonly source: string;
      /** `system:node:<name>`; null if the credentials are not a certificate. */
      readonly commonName: string | null;
      readonly notAfter: string | null;
      readonly server: string | null;
    };

/**
 * Whether the kubelet has its own credentials: kubelet.conf and a loadable certificate. kubelet.conf alone is
 * written earlier than the certificate. An expired certificate, by the clock of the host, is unusable.
 */
export const clientIdentity = defineFact(
  {
    conf: { kind: 'file', path: KUBELET_CONF },
    pem: { kind: 'file', path: KUBELET_CLIENT_PEM },
    date: { kind: 'command', argv: ['date', '+%s'] },
  },
  ({ conf, pem, date }, parseText): ClientIdentity => {
    if (conf?.content === undefined) return { state: 'missing' };
    const now = date.exitCode === 0 ? new Date(Number(date.stdout.trim()) * 1000) : null;
    return identityIn(parseText(conf.content, readKubeconfig), pem?.content ?? null, now, parseText);
  },
);

/** The Node that a kubelet has registered, by its client certificate; null: none. The certificate on a host proves nothing. */
export function registeredNode(identity: ClientIdentity): string | null {
  return identity.state === 'usable' ? (/^system:node:(.+)$/.exec(identity.commonName ?? '')?.[1] ?? null) : null;
}

/** Credentials of the kubelet's user in a kubeconfig; `hasOther`: a token, or an exec plugin. Null: not a kubeconfig. */
function readKubeconfig(text: string) {
  const { documents, problems } = parseSource(text, KUBELET_CONF);
  const root = documents[0]?.root ?? null;
  if (problems.length > 0 || root === null) return null;
  const user = firstMember(root, 'users', 'user');
  return {
    server: textOf(firstMember(root, 'clusters', 'cluster'), 'server'),
    certificate: textOf(user, 'client-certificate-data'),
    certificatePath: textOf(user, 'client-certificate'),
    hasOther: textOf(user, 'token') !== null || entryOf(user, 'exec') !== undefined,
  };
}

/** @param now the clock of the host; null: unknown */
function identityIn(
  kubeconfig: ReturnType<typeof readKubeconfig>,
  currentPem: string | null,
  now: Date | null,
  parseText: ParseText,
): ClientIdentity {
  if (kubeconfig === null) return { state: 'unusable', why: `${KUBELET_CONF} is not a kubeconfig` };
  const { server, certificate, certificatePath: path, hasOther } = kubeconfig;
  const validate = (pem: string, source: string): ClientIdentity => {
    try {
      const { subject, notAfter } = parseText(pem, readCertificateHead);
      const commonName = subject.find(({ type }) => type === 'CN')?.value ?? null;
      if (now !== null && notAfter < now)
        return { state: 'unusable', why: `the client certificate in ${source} expired on ${notAfter.toISOString()}`, commonName };
      return { state: 'usable', source, commonName, notAfter: notAfter.toISOString(), server };
    } catch {
      return { state: 'unusable', why: `${source} ${whyNoCertificate(pem)}` };
    }
  };
  if (certificate !== null) return validate(Buffer.from(certificate, 'base64').toString('utf8'), KUBELET_CONF);
  if (path === KUBELET_CLIENT_PEM)
    return currentPem === null
      ? { state: 'unusable', why: `${KUBELET_CLIENT_PEM} does not exist yet` }
      : validate(currentPem, KUBELET_CLIENT_PEM);
  if (path !== null || hasOther) return { state: 'usable', source: path ?? KUBELET_CONF, commonName: null, notAfter: null, server };
  return { state: 'unusable', why: `${KUBELET_CONF} has no credentials` };
}

/** A member of the first entry of a list in a kubeconfig. */
function firstMember(root: SourceNode, list: string, member: string): SourceNode | null {
  const node = entryOf(root, list)?.value;
  const first = node?.kind === 'list' ? (node.items[0] ?? null) : null;
  return entryOf(first, member)?.value ?? null;
}

function textOf(node: SourceNode | null, key: string): string | null {
  const value = entryOf(node, key)?.value;
  return value?.kind === 'scalar' && typeof value.scalar.value === 'string' && value.scalar.value !== '' ? value.scalar.value : null;
}
