import { jsonEqual } from '../../base/json.ts';
import { valueAt } from '../documents/values.ts';
import { isActive } from './pod.ts';
import type { RiskChange, RiskInput, RiskPod } from './risk-input.ts';

/** A change of a kubelet's configuration that would end pods, or keep new pods from starting. Found before the change. */
export interface PodRisk {
  /** Path of the field in KubeletConfiguration, for example `maxPods`. */
  readonly path: string;
  /** Why, as a clause, for example `maxPods 1 is less than the 3 pods of the node`. */
  readonly why: string;
  /** `NAMESPACE/NAME` of the running pods that would end, sorted; empty: new pods are affected, not running ones. */
  readonly pods: readonly string[];
  /** `loss`: refused without `--allow-pod-loss`. `warning`: reported. */
  readonly severity: 'loss' | 'warning';
  /** The kubelet would exit: moving or losing pods does not help. */
  readonly stopsKubelet?: boolean;
  /** What makes the value possible, as the beginning of a hint, for example `create the file on the host`. */
  readonly fix?: string;
}

export function loss(path: string, why: string, pods: readonly string[] = []): PodRisk {
  return { path, why, pods, severity: 'loss' };
}

/** A value with which the kubelet exits on this host. */
export function exit(path: string, why: string, fix?: string): PodRisk {
  return { ...loss(path, why), stopsKubelet: true, ...(fix === undefined ? {} : { fix }) };
}

export function warning(path: string, why: string): PodRisk {
  return { path, why, pods: [], severity: 'warning' };
}

/** Whether the change affects one of these fields, which may be members of others (`a.b`). */
export function affects({ before, after }: RiskChange, paths: readonly string[]): boolean {
  return paths.some((path) => before === null || !jsonEqual(valueAt(before, path) ?? null, valueAt(after, path) ?? null));
}

/** The pods that the node runs and that are not being stopped; none if they are unknown. */
export function presentPods(pods: RiskInput['pods'], meets: (pod: RiskPod) => boolean): readonly RiskPod[] {
  return (pods ?? []).filter((pod) => isActive(pod) && !pod.isTerminating && meets(pod));
}

export function namesOf(pods: readonly RiskPod[]): readonly string[] {
  return pods.map(({ name }) => name).toSorted();
}
