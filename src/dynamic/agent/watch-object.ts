import { type FollowCollectionOptions, listWatch } from '../../kube/list-watch.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';

export interface FollowOptions extends Pick<FollowCollectionOptions, 'cluster' | 'clock' | 'random' | 'signal' | 'onIssue'> {
  /** The object as it is now, and each time it changed; null: it is not there. */
  readonly onObject: (object: KubeObject | null) => void;
  /** Whether there is nothing more to follow: an object that can't change. */
  readonly isFinal?: (object: KubeObject) => boolean;
}

/** Follows one object, as `listWatch` does many. Ends when the signal is aborted, or when it can't change any more. */
export async function watchObject(ref: ObjectRef, { onObject, isFinal = () => false, ...options }: FollowOptions): Promise<void> {
  const { apiVersion, kind, namespace, name } = ref;
  const followed = { apiVersion, kind, ...(namespace === undefined ? {} : { namespace }), fieldSelector: `metadata.name=${name}` };
  await listWatch(followed, {
    ...options,
    onObjects: (objects) => onObject(objects.get(name) ?? null),
    isFinal: (objects) => {
      const object = objects.get(name);
      return object !== undefined && isFinal(object);
    },
  });
}
