import type { Position, Problem } from '../base/errors.ts';
import { andList, quoteValue } from './document-problems.ts';

/** The command that reads a document of another command, by apiVersion and kind. */
const READERS: readonly (readonly [pattern: RegExp, hint: string])[] = [
  [
    /^kubeletadm\.dev\/\S+ Fleet$/,
    'The file is a fleet file: validate it with kubeletadm fleet validate -f FILE, apply it with kubeletadm apply -f FILE',
  ],
  [
    /^kubeletadm\.dev\/\S+ FleetPlan$/,
    'The file is a saved plan: show it with kubeletadm plan show FILE, apply it with kubeletadm apply FILE',
  ],
  [
    /^(?:kubeadm|kubelet\.config|kubeproxy\.config)\.k8s\.io\/\S+ (?:Init|Cluster|Join|Reset|Upgrade|Kubelet|KubeProxy)Configuration$/,
    'Validate the file with kubeletadm config validate FILE, and pass it to init, join, reset or upgrade with --config FILE',
  ],
  [/^k0sctl\.k0sproject\.io\/\S+ Cluster$/, 'The file is for k0sctl: import its hosts with kubeletadm fleet init --from-k0sctl FILE'],
  [/^v1 Config$/, 'The file is a kubeconfig: pass it with --kubeconfig FILE'],
];

/** An unknown group and kind. */
export function unknownKind(
  apiVersion: string,
  kind: string,
  position: Position,
  accepted: readonly string[],
  likely: string | null,
): Problem {
  const reader = READERS.find(([pattern]) => pattern.test(`${apiVersion} ${kind}`))?.[1];
  const hint = reader ?? (likely === null ? `Supported kinds: ${andList(accepted)}` : `Did you mean ${likely}?`);
  return { code: 'CONFIG_UNKNOWN_KIND', message: `unknown kind ${quoteValue(kind)} in ${quoteValue(apiVersion)}`, hint, position };
}
