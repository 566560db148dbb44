import type { SensitiveText } from '../base/text/secret.ts';
import { fileFacts } from '../host/facts/file-facts.ts';
import type { Host } from '../host/host.ts';
import { observe } from '../host/observe.ts';
import { type HostKubeconfig, rebuildHostKubeconfig } from '../kube/host-kubeconfig.ts';

export interface HostKubeconfigFile {
  /** Path of the kubeconfig on the host. */
  readonly path: string;
  /** Its text on the host, as it is or will be. */
  readonly text: SensitiveText;
  /** How to fix a kubeconfig that is refused, a sentence without a final stop. */
  readonly hint: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes a kubeconfig that the local host can use from one of a host; the files that it names are read on the host.
 * @throws what `rebuildHostKubeconfig` and `host.ask` throw
 */
export async function readHostKubeconfig(host: Host, { path, text, hint, signal }: HostKubeconfigFile): Promise<HostKubeconfig> {
  const readFile = async (file: string): Promise<string | null> =>
    (await observe(host, fileFacts([file]), signal)).get(file)?.content ?? null;
  return rebuildHostKubeconfig({ host: host.name, path, text, readFile, hint });
}
