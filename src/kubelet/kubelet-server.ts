import type { Json, JsonObject } from '../base/json.ts';
import { KUBELET_PKI_DIR } from '../kube/well-known.ts';

/** A kubelet's API on its own host. */
export interface KubeletServer {
  /** `https://127.0.0.1:10250`. */
  readonly url: string;
  /** The file that begins with the serving certificate. */
  readonly certificateFile: string;
}

/**
 * The address of a kubelet's API.
 * @param config effective configuration
 * @param certDirectory value of `--cert-dir`
 * @returns null: disabled
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go InitializeTLS, pkg/kubelet/certificate/kubelet.go
 *   (1.36)
 */
export function kubeletServerOf(config: JsonObject, certDirectory: string = KUBELET_PKI_DIR): KubeletServer | null {
  if (config.enableServer === false) return null;
  const port = typeof config.port === 'number' && config.port !== 0 ? config.port : 10250;
  const bind = textOf(config.address);
  const address = bind === '' || bind === '0.0.0.0' ? '127.0.0.1' : bind === '::' ? '::1' : bind;
  const named = textOf(config.tlsCertFile);
  const own = config.serverTLSBootstrap === true ? 'kubelet-server-current.pem' : 'kubelet.crt';
  return {
    url: `https://${address.includes(':') ? `[${address}]` : address}:${port}`,
    certificateFile: named === '' ? `${certDirectory}/${own}` : named,
  };
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
