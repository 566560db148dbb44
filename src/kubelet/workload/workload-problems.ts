import { AppError } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import type { PodLoss } from './pod-losses.ts';

const MAX_NAMED = 5;

/** Pods that ran before a change of their kubelet do not run any more. */
export function podsLost(host: string, phase: string, losses: readonly PodLoss[]): AppError {
  const named = losses.slice(0, MAX_NAMED).map(({ pod, seen }) => `${pod} (${printable(seen)})`);
  const others = losses.length > MAX_NAMED ? `, and ${losses.length - MAX_NAMED} more` : '';
  const what = losses.length === 1 ? '1 pod that ran before the change does' : `${losses.length} pods that ran before the change do`;
  const [namespace = '', name = ''] = (losses[0]?.pod ?? '').split('/');
  return new AppError({
    host,
    code: 'PODS_LOST',
    message: `${phase}: ${what} not run any more: ${named.join(', ')}${others}`,
    hint: `Change the fields that keep the pods from running, or drain the node first. See kubectl describe pod -n ${namespace} ${name}`,
  });
}

/** A kubelet cannot start a new pod. `why` is a clause. */
export function probePodFailed(
  host: string,
  { phase, nodeName, pod, why }: { readonly phase: string; readonly nodeName: string; readonly pod: string; readonly why: string },
): AppError {
  return new AppError({
    host,
    code: 'PROBE_POD_FAILED',
    message: `${phase}: Node ${nodeName} cannot start new pods, because the probe pod ${pod} failed: ${printable(why, 500)}`,
    hint: 'Fix the cause in the message. See journalctl -u kubelet on the host',
  });
}
