import type { Clock } from '../../../src/base/clock.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../../src/kube/resources.ts';
import { MASTERS_GROUP_NAME } from '../../../src/kube/well-known.ts';
import { type UserInfo, userOf } from '../authenticate.ts';
import type { CertificateAuthority } from '../pki.ts';
import type { Registry } from '../registry.ts';
import type { Store } from '../store.ts';

/** The dependencies of a controller, which runs until `signal` aborts. */
export interface ControllerContext {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly ca: CertificateAuthority;
  readonly signal: AbortSignal;
}

/** The user of the controllers' writes. */
export const CONTROLLER: UserInfo = userOf('system:kube-controller-manager', [MASTERS_GROUP_NAME]);

/**
 * Calls `work` for every existing object of a kind, and again for each later write. Errors of `work` are
 * caused by a lost race with a client: the next event repeats the call.
 */
export function forEachWritten(
  { store, signal }: ControllerContext,
  type: ResourceType,
  work: (object: KubeObject) => void | Promise<void>,
): void {
  const run = (object: KubeObject) => {
    try {
      work(object)?.catch(() => {});
    } catch {
      // Errors are ignored, see above.
    }
  };
  const stop = store.subscribe((event) => {
    if (event.resource === type && event.type !== 'DELETED') run(event.object);
  });
  signal.addEventListener('abort', stop);
  store.list(type).forEach(run);
}

/** The resource type of a kind that the double serves. */
export function typeOf(apiVersion: string, kind: string): ResourceType {
  const type = resourceOf(apiVersion, kind);
  if (!type) throw new Error(`the API server double has no ${kind} in ${apiVersion}`);
  return type;
}
