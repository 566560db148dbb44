import { type KubeconfigTarget, parseKubeconfig, resolveContext } from '../core/config/kubeconfig.ts';
import { clientCertificateKubeconfig, tokenKubeconfig } from '../core/config/kubeconfig-render.ts';
import { AppError } from '../core/errors.ts';
import { combineFacts } from '../core/facts/fact.ts';
import { fileFacts } from '../core/facts/file-facts.ts';
import { clientIdentity, KUBELET_CONF } from '../core/facts/kubelet-identity.ts';
import { Secret, type SensitiveText } from '../core/text/secret.ts';
import { observe } from '../engine/observe.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Host } from '../ports/host.ts';
import type { Services } from '../ports/services.ts';
import { answers } from './near-api-server.ts';

const MEND = 'Give the credentials of an administrator with --kubeconfig';

/**
 * Connects to the API server as the node itself, with the credentials of its kubelet. The files that its kubelet.conf names are on the host, so they are read
 * there; nothing of it is written anywhere. Where the API server is not reached from here, it is asked over the connection to the host.
 * @throws AppError NODE_NO_CREDENTIALS (exit code 3) when there is no kubelet.conf, or it holds nothing to log in with
 */
export async function nodeCluster(services: Services, host: Host): Promise<Cluster> {
  const read = async (path: string): Promise<string | null> =>
    (await observe(host, fileFacts([path]), services.signal)).get(path)?.content ?? null;
  const facts = combineFacts({ files: fileFacts([KUBELET_CONF]), identity: clientIdentity });
  const { files, identity } = await observe(host, facts, services.signal);
  const text = files.get(KUBELET_CONF)?.content ?? null;
  if (text === null) throw noCredentials(host, `there is no ${KUBELET_CONF}: the node has not joined a cluster`);
  if (identity.state === 'unusable' && identity.commonName !== undefined) throw expired(host, identity.why);
  const target = resolveContext(parseKubeconfig(text, `${host.name}:${KUBELET_CONF}`));
  const { caPem, kubeconfig } = await embed(host, target, read);
  const question = { server: target.cluster.server, trust: { kind: 'authorities', pem: caPem } } as const;
  const from = host.dial === undefined || (await answers(services, question)) ? {} : { from: host };
  return services.connectCluster({ kubeconfig: kubeconfig.reveal(), file: `${host.name}:${KUBELET_CONF}`, ...from });
}

async function embed(
  host: Host,
  { cluster, user }: KubeconfigTarget,
  read: (path: string) => Promise<string | null>,
): Promise<{ readonly caPem: string; readonly kubeconfig: SensitiveText }> {
  const needed = async (path: string): Promise<string> => {
    const content = await read(path);
    if (content === null) throw noCredentials(host, `${KUBELET_CONF} names ${path}, and there is no such file`);
    return content;
  };
  const caPem = cluster.caData === undefined ? await needed(cluster.caFile ?? '/etc/kubernetes/pki/ca.crt') : decode(cluster.caData);
  const shared = { clusterName: 'kubernetes', server: cluster.server, caPem, user: user?.name ?? 'node' };
  if (user?.token !== undefined) return { caPem, kubeconfig: tokenKubeconfig({ ...shared, token: user.token }) };
  if (user?.certData !== undefined && user.keyData !== undefined) {
    const keyPem = new Secret(decode(user.keyData.reveal()));
    return { caPem, kubeconfig: clientCertificateKubeconfig({ ...shared, certificatePem: decode(user.certData), keyPem }) };
  }
  if (user?.certFile === undefined) throw noCredentials(host, `${KUBELET_CONF} holds no client certificate`);
  const certificatePem = await needed(user.certFile);
  const keyPem = user.keyFile === undefined || user.keyFile === user.certFile ? certificatePem : await needed(user.keyFile);
  const material = { certificatePem: certificatesOf(certificatePem), keyPem: new Secret(keysOf(keyPem)) };
  return { caPem, kubeconfig: clientCertificateKubeconfig({ ...shared, ...material }) };
}

function decode(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}

/** kubelet-client-current.pem holds both; each goes where it belongs. */
function certificatesOf(pem: string): string {
  return (pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----\n?/g) ?? []).join('');
}

function keysOf(pem: string): string {
  return /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----\n?/.exec(pem)?.[0] ?? '';
}

function noCredentials(host: Host, message: string): AppError {
  return new AppError({ host: host.name, code: 'NODE_NO_CREDENTIALS', message, mend: MEND }, { exitCode: 3 });
}

function expired(host: Host, why: string): AppError {
  const mend = `Get it another: certs renew-kubelet --host ${host.name} --kubeconfig admin.conf. ${MEND} where that is to wait`;
  return new AppError({ host: host.name, code: 'NODE_NO_CREDENTIALS', message: why, mend }, { exitCode: 3 });
}
