import type { KubeObject } from '../../kube/object.ts';
import { objectsAt, textAt } from '../documents/values.ts';
import { isActive, readPod } from './pod.ts';

/**
 * `evictable` is moved by a drain · `daemon-set` stays, its controller ignores cordons · `mirror` shows a static pod, which only
 * its node can stop · `finished` occupies nothing.
 */
export type DrainKind = 'evictable' | 'daemon-set' | 'mirror' | 'finished';

/** What a drain does with a pod, by the rules of kubectl drain. @see k8s.io/kubectl pkg/drain/filters.go (1.36) */
export function drainKind(object: KubeObject): DrainKind {
  const { isStatic, phase } = readPod(object);
  if (isStatic) return 'mirror';
  if (!isActive({ phase })) return 'finished';
  const controller = controllerOf(object);
  return controller?.kind === 'DaemonSet' && controller.apiVersion.startsWith('apps/') ? 'daemon-set' : 'evictable';
}

/** Null: the pod has none. */
export function controllerOf(object: KubeObject): {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
} | null {
  const owner = objectsAt(object, 'metadata.ownerReferences').find(({ controller }) => controller === true);
  if (owner === undefined) return null;
  return { apiVersion: textAt(owner, 'apiVersion'), kind: textAt(owner, 'kind'), name: textAt(owner, 'name'), uid: textAt(owner, 'uid') };
}
