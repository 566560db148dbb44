import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { KUBECONFIG_LIMITS, parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';

/**
 * Replaces the client certificate, key and CA of the current context in a kubeconfig; all else is kept.
 * @throws AppError as parseKubeconfig and resolveContext
 * @see kubeadm 1.36 certs renew
 */
export function renewKubeconfig(
  text: string,
  path: string,
  renewed: { readonly certificatePem: string; readonly keyPem: Secret; readonly caPem: string },
): SensitiveText {
  const { cluster, user } = resolveContext(parseKubeconfig(text, path));
  const root = parseSource(text, path, KUBECONFIG_LIMITS).documents.find((document) => document.root !== null)?.root ?? null;
  const config = (root === null ? {} : sourceToJson(root)) as JsonObject;
  const base64 = (pem: string): string => Buffer.from(pem, 'utf8').toString('base64');
  const clusters = withMembers(config.clusters, cluster.name, 'cluster', { 'certificate-authority-data': base64(renewed.caPem) });
  const users = withMembers(config.users, user?.name ?? '', 'user', {
    'client-certificate-data': base64(renewed.certificatePem),
    'client-key-data': base64(renewed.keyPem.reveal()),
  });
  return new SensitiveText([new Secret(encodeYaml({ ...config, clusters, users }))]);
}

function withMembers(list: Json | undefined, name: string, member: string, values: JsonObject): Json {
  return (Array.isArray(list) ? list : []).map((entry: Json) => {
    if (!isJsonObject(entry) || entry.name !== name) return entry;
    const existing = entry[member];
    return { ...entry, [member]: { ...(isJsonObject(existing) ? existing : {}), ...values } };
  });
}
