import { Secret } from '../../base/text/secret.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { Host } from '../../host/host.ts';
import { observe } from '../../host/observe.ts';
import { parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import { clientKeyOf } from '../../kube/kubeconfig-render.ts';

/** Credential of a kubelet. */
export type KubeletCredential =
  /** Certificate and key in PEM. */
  { readonly kind: 'certificate'; readonly certificate: string; readonly key: Secret } | { readonly kind: 'token'; readonly token: Secret };

/**
 * Reads the current credential from the kubeconfig of a kubelet: certificates are rotated.
 * @param path path of the kubeconfig on the host
 * @throws Error with a clause: a file is missing, or the kubeconfig uses an exec plugin
 */
export async function readKubeletCredential(host: Host, path: string, signal?: AbortSignal): Promise<KubeletCredential> {
  const read = async (file: string): Promise<string> => {
    const full = file.startsWith('/') ? file : `${path.slice(0, path.lastIndexOf('/') + 1)}${file}`;
    const content = (await observe(host, fileFacts([full]), signal)).get(full)?.content;
    if (content === undefined) throw new Error(`${full} cannot be read`);
    return content;
  };
  const { user } = resolveContext(parseKubeconfig(await read(path), path));
  const certificate = user?.certFile === undefined ? decode(user?.certData) : await read(user.certFile);
  const key = user?.keyFile === undefined ? clientKeyOf(user?.keyData) : new Secret(await read(user.keyFile));
  if (certificate !== null && key !== null) return { kind: 'certificate', certificate, key };
  const token = user?.tokenFile === undefined ? user?.token : new Secret((await read(user.tokenFile)).trim());
  if (token !== undefined) return { kind: 'token', token };
  throw new Error(`${path} holds neither a client certificate nor a token`);
}

function decode(base64: string | undefined): string | null {
  return base64 === undefined ? null : Buffer.from(base64, 'base64').toString('utf8');
}
