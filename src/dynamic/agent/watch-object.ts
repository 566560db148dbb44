import { type FollowCollectionOptions, listWatch } from '../../kube/list-watch.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';

export interface FollowOptions extends Pick<FollowCollectionOptions, 'cluster' | 'clock' | 'random' | 'signal' | 'onIssue'> {
  /** Called with the current object and after each change; null: the object does not exist. */
  readonly onObject: (object: KubeObject | null) => void;
  /** Whether the object is immutable, so that watching can end. */
  readonly isFinal?: (object: KubeObject) => boolean;
}

/** Watches one object with `listWatch`. Ends when the signal is aborted or the object is final. */
export async function watchObject(ref: ObjectRef, { onObject, isFinal = () => false, ...options }: FollowOptions): Promise<void> {
  const { apiVersion, kind, namespace, name } = ref;
  const followed = { apiVersion, kind, namespace, fieldSelector: `metadata.name=${name}` };
  await listWatch(followed, {
    ...options,
    onObjects: (objects) => onObject(objects.get(name) ?? null),
    isFinal: (objects) => {
      const object = objects.get(name);
      return object !== undefined && isFinal(object);
    },
  });
}
