import type { SensitiveText } from '../base/text/secret.ts';
import type { Host } from '../host/access/host.ts';
import { observe } from '../host/access/observe.ts';
import { fileFacts } from '../host/facts/file-facts.ts';
import { type HostKubeconfig, rebuildHostKubeconfig } from '../kube/host-kubeconfig.ts';

interface HostKubeconfigFile {
  readonly path: string;
  /** Its content on the host, existing or planned. */
  readonly text: SensitiveText;
  /** Hint for a rejected kubeconfig: a sentence without a full stop. */
  readonly hint: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes a host's kubeconfig usable on the local host; files that it refers to are read on the host.
 * @throws errors of `rebuildHostKubeconfig` and `host.query`
 */
export async function readHostKubeconfig(host: Host, { path, text, hint, signal }: HostKubeconfigFile): Promise<HostKubeconfig> {
  const readFile = async (file: string): Promise<string | null> =>
    (await observe(host, fileFacts([file]), signal)).get(file)?.content ?? null;
  return rebuildHostKubeconfig({ host: host.name, path, text, readFile, hint });
}
