import { isAppError } from '../../base/errors.ts';
import { Secret } from '../../base/text/secret.ts';
import { defineFact } from '../../host/facts/fact.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import { CA_CERT, KUBELET_CLIENT_PEM, KUBELET_CONF, KUBELET_PKI_DIR, KUBELET_SERVER_PEM } from '../../kube/well-known.ts';

/** A certificate on a host; `pem` is null if `path` does not exist. */
export interface FoundCertificate {
  readonly role: 'client' | 'serving' | 'ca' | 'ca of kubelet.conf';
  readonly path: string;
  readonly pem: string | null;
  /** Private key; null if missing; undefined for CAs, whose keys are elsewhere. */
  readonly key?: Secret | null;
}

export interface NodeCertificates {
  readonly certificates: readonly FoundCertificate[];
  /** By the clock of the host; null if unknown. */
  readonly now: Date | null;
  /** The error in kubelet.conf; null: none. */
  readonly issue: string | null;
}

const SELF_SIGNED = `${KUBELET_PKI_DIR}/kubelet.crt`;

/** The certificates of a kubelet at kubeadm's paths. */
export const nodeCertificates = defineFact(
  {
    conf: { kind: 'file', path: KUBELET_CONF },
    client: { kind: 'file', path: KUBELET_CLIENT_PEM },
    serving: { kind: 'file', path: KUBELET_SERVER_PEM },
    selfSigned: { kind: 'file', path: SELF_SIGNED },
    selfSignedKey: { kind: 'file', path: `${KUBELET_PKI_DIR}/kubelet.key` },
    ca: { kind: 'file', path: CA_CERT },
    date: { kind: 'command', argv: ['date', '+%s'] },
  },
  (found): NodeCertificates => {
    const { certificates, issue } = readKubeletConf(found.conf, found.client);
    const serving = readServing(found);
    const ca: FoundCertificate = { role: 'ca', path: CA_CERT, pem: found.ca?.content ?? null };
    return {
      certificates: [...certificates, ...serving, ca],
      now: found.date.exitCode === 0 ? new Date(Number(found.date.stdout.trim()) * 1000) : null,
      issue,
    };
  },
);

function readKubeletConf(conf: FileFact | null, current: FileFact | null): Pick<NodeCertificates, 'certificates' | 'issue'> {
  if (conf?.content === undefined) return { certificates: [], issue: `${KUBELET_CONF} does not exist: the host has not joined a cluster` };
  try {
    const { cluster, user } = resolveContext(parseKubeconfig(conf.content, KUBELET_CONF));
    const ca =
      cluster.caData === undefined ? [] : [{ role: 'ca of kubelet.conf', path: KUBELET_CONF, pem: decode(cluster.caData) } as const];
    if (user?.certData !== undefined) {
      const key = user.keyData === undefined ? null : new Secret(decode(user.keyData.reveal()));
      return { certificates: [{ role: 'client', path: KUBELET_CONF, pem: decode(user.certData), key }, ...ca], issue: null };
    }
    if (user?.certFile === KUBELET_CLIENT_PEM) return { certificates: [pair('client', KUBELET_CLIENT_PEM, current), ...ca], issue: null };
    const why = user?.certFile === undefined ? 'names no client certificate' : `names ${user.certFile}, which is not the standard path`;
    return { certificates: ca, issue: `${KUBELET_CONF} ${why}` };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { certificates: [], issue: `${KUBELET_CONF}: ${error.problems[0]?.message ?? 'not readable'}` };
  }
}

/** A certificate signed by the cluster, otherwise the kubelet's self-signed one. */
function readServing(found: {
  readonly serving: FileFact | null;
  readonly selfSigned: FileFact | null;
  readonly selfSignedKey: FileFact | null;
}): readonly FoundCertificate[] {
  if (found.serving !== null) return [pair('serving', KUBELET_SERVER_PEM, found.serving)];
  if (found.selfSigned === null) return [];
  const key = found.selfSignedKey?.content === undefined ? null : new Secret(found.selfSignedKey.content);
  return [{ role: 'serving', path: SELF_SIGNED, pem: found.selfSigned.content ?? '', key }];
}

/** Certificate and key in one file. */
function pair(role: FoundCertificate['role'], path: string, file: FileFact | null): FoundCertificate {
  const pem = file?.content ?? null;
  return { role, path, pem, key: pem?.includes('PRIVATE KEY-----') ? new Secret(pem) : null };
}

function decode(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}
