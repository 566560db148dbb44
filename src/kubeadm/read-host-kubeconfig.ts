import type { SensitiveText } from '../base/text/secret.ts';
import type { Host } from '../host/access/host.ts';
import { observe } from '../host/access/observe.ts';
import { fileFacts } from '../host/facts/file-facts.ts';
import { type HostKubeconfig, rebuildHostKubeconfig } from '../kube/host-kubeconfig.ts';

/**
 * Makes a host's kubeconfig usable on the local host; files that it refers to are read on the host.
 * @param file.text its content on the host, existing or planned
 * @param file.hint for a rejected kubeconfig: a sentence without a full stop
 * @throws errors of `rebuildHostKubeconfig` and `host.query`
 */
export async function readHostKubeconfig(
  host: Host,
  {
    signal,
    ...file
  }: { readonly path: string; readonly text: SensitiveText; readonly hint: string; readonly signal?: AbortSignal | undefined },
): Promise<HostKubeconfig> {
  const readFile = async (path: string): Promise<string | null> =>
    (await observe(host, fileFacts([path]), signal)).get(path)?.content ?? null;
  return rebuildHostKubeconfig({ ...file, host: host.name, readFile });
}
