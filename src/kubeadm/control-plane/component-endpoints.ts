import type { JsonObject } from '../../base/json.ts';
import { upTo } from '../../base/text/up-to.ts';
import { listAt, objectsAt } from '../../kubelet/documents/values.ts';
import { localAddress } from '../../kubelet/effective/configz.ts';

export interface ComponentEndpoint {
  readonly name: 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';
  readonly url: string;
}

const COMPONENTS = [
  { name: 'kube-apiserver', flag: 'advertise-address', port: '6443', path: 'livez' },
  { name: 'kube-controller-manager', flag: 'bind-address', port: '10257', path: 'healthz' },
  { name: 'kube-scheduler', flag: 'bind-address', port: '10259', path: 'livez' },
] as const;

/**
 * The health endpoints of the components on their host, according to the flags in their static Pods, which may be patched.
 * @param podOf returns the Pod of a component
 * @see kubeadm 1.36 wait-control-plane
 */
export function componentEndpoints(podOf: (name: ComponentEndpoint['name']) => JsonObject): readonly ComponentEndpoint[] {
  return COMPONENTS.map(({ name, flag, port, path }) => {
    const words = commandOf(podOf(name), name);
    return { name, url: `https://${localAddress(flagValue(words, flag) ?? '')}:${flagValue(words, 'secure-port') ?? port}/${path}` };
  });
}

/** The command line of the container that runs a program. */
export function commandOf(pod: JsonObject, name: string): readonly string[] {
  const commands = objectsAt(pod, 'spec.containers').map((container) =>
    [...listAt(container, 'command'), ...listAt(container, 'args')].filter((word) => typeof word === 'string'),
  );
  return commands.find(([program]) => program === name) ?? [];
}

/** The value of a flag on a command line: the last occurrence counts. */
export function flagValue(words: readonly string[], flag: string): string | undefined {
  const value = words
    .map((word) => word.trim())
    .findLast((word) => /^--?[^=]+=/.test(word) && upTo(word, '=').replace(/^--?/, '') === flag);
  return value?.slice(value.indexOf('=') + 1) || undefined;
}
