import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { lastFlag } from '../../host/systemd/try-drop-in.ts';
import { CA_CERT } from '../../kube/well-known.ts';
import { type NodeCertificates, nodeCertificates } from '../facts/node-certificates.ts';
import { observeKubeletWords, readConfigFiles } from './healthz-url.ts';

/** The certificates of a host's kubelet, without the CA at kubeadm's path if the kubelet uses another one. */
export async function observeCertificates(host: Host, signal?: AbortSignal): Promise<NodeCertificates> {
  const found = await observe(host, nodeCertificates, signal);
  const words = await observeKubeletWords(host, signal);
  const { config } = await readConfigFiles(host, words, signal);
  const used = lastFlag(words, 'client-ca-file')?.value ?? clientCaFile(config ?? {});
  const isOther = used !== '' && used !== CA_CERT;
  return isOther ? { ...found, certificates: found.certificates.filter(({ path }) => path !== CA_CERT) } : found;
}

function clientCaFile({ authentication }: JsonObject): string {
  const x509 = isJsonObject(authentication) ? authentication.x509 : null;
  const file = isJsonObject(x509) ? x509.clientCAFile : null;
  return typeof file === 'string' ? file : '';
}
