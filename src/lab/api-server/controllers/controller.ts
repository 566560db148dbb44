import type { Clock } from '../../../base/clock.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { type ResourceType, resourceOf } from '../../../kube/resources.ts';
import { MASTERS_GROUP_NAME } from '../../../kube/well-known.ts';
import { type UserInfo, userOf } from '../authenticate.ts';
import type { CertificateAuthority } from '../pki.ts';
import type { Registry } from '../registry.ts';
import type { Store } from '../store.ts';

/** What a controller works with. It lives until `signal` aborts. */
export interface ControllerContext {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly authority: CertificateAuthority;
  readonly signal: AbortSignal;
}

/** Who the controllers are when they write. */
export const CONTROLLER: UserInfo = userOf('system:kube-controller-manager', [MASTERS_GROUP_NAME]);

/**
 * Calls `work` for every object of a kind that exists, and again for each one written later.
 * Errors of `work` are those of a lost race with a client: the next event brings the object again.
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
      // See above.
    }
  };
  const stop = store.subscribe((event) => {
    if (event.resource === type && event.type !== 'DELETED') run(event.object);
  });
  signal.addEventListener('abort', stop);
  store.list(type).forEach(run);
}

/** The resource of a kind the double serves. */
export function typeOf(apiVersion: string, kind: string): ResourceType {
  const type = resourceOf(apiVersion, kind);
  if (!type) throw new Error(`the API server double has no ${kind} in ${apiVersion}`);
  return type;
}
