import { AppError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { parseSource } from '../../codec/source.ts';
import { KUBELET_PKI_DIR } from '../../kube/well-known.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import { decodeKubeletConfiguration, KUBELET_API_VERSION, KUBELET_KIND } from '../documents/decode.ts';
import { textAt } from '../documents/values.ts';

/**
 * Parses a response of `/configz`: the effective configuration including defaults and flags.
 * @param answer `{"kubeletconfig": {...}}`; the omitted kind and version are added
 * @param node for messages
 * @returns result of `decodeKubeletConfiguration`, without fields unknown to the minor
 * @throws AppError CONFIGZ_INVALID
 */
export function readConfigz(answer: JsonObject, node: string, options: KubeletReader): JsonObject {
  const config = answer.kubeletconfig;
  if (!isJsonObject(config)) throw invalid(node, 'the response has no field kubeletconfig');
  const text = JSON.stringify({ ...config, apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND });
  const { documents, problems } = parseSource(text, 'configz');
  const document = documents[0];
  if (document === undefined || problems.length > 0) throw invalid(node, problems[0]?.message ?? 'empty response');
  const decoded = decodeKubeletConfiguration(document, { ...options, lenient: true, syntax: 'json' });
  const error = decoded.problems.find(({ severity }) => severity !== 'warning');
  if (error !== undefined) throw invalid(node, `${error.path ?? ''}: ${error.message}`);
  return decoded.value;
}

function invalid(node: string, why: string): AppError {
  return new AppError({ host: `node/${node}`, code: 'CONFIGZ_INVALID', message: `cannot read the configz of the kubelet: ${why}` });
}

/**
 * The address of a kubelet's API.
 * @param config effective configuration
 * @param certDirectory value of `--cert-dir`
 * @returns `https://127.0.0.1:10250`, and the file that begins with the serving certificate; null: disabled
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go InitializeTLS, pkg/kubelet/certificate/kubelet.go
 *   (1.36)
 */
export function kubeletServerOf(config: JsonObject, certDirectory: string = KUBELET_PKI_DIR) {
  if (config.enableServer === false) return null;
  const port = typeof config.port === 'number' && config.port !== 0 ? config.port : 10250;
  const named = textAt(config, 'tlsCertFile');
  const own = config.serverTLSBootstrap === true ? 'kubelet-server-current.pem' : 'kubelet.crt';
  return {
    url: `https://${localAddress(textAt(config, 'address'))}:${port}`,
    certificateFile: named === '' ? `${certDirectory}/${own}` : named,
  };
}

/** The host part of the URL on which a server with this bind address answers its own host. */
export function localAddress(bind: string): string {
  const address = bind === '' || bind === '0.0.0.0' ? '127.0.0.1' : bind === '::' ? '::1' : bind;
  return address.includes(':') ? `[${address}]` : address;
}
