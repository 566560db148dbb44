import type { KubeObject } from '../../../src/kube/object.ts';
import { KUBE_SYSTEM } from '../../../src/kube/well-known.ts';
import { expiryOf } from '../authenticate.ts';
import { textOf } from '../members.ts';
import { CONTROLLER, type ControllerContext, forEachWritten, typeOf } from './controller.ts';

const SECRETS = typeOf('v1', 'Secret');
const LONGEST_SLEEP_MS = 2 ** 31 - 1;

/**
 * Deletes expired bootstrap tokens.
 * @see kubernetes/kubernetes pkg/controller/bootstrap/tokencleaner.go (1.36)
 */
export function startTokenCleaner(context: ControllerContext): void {
  forEachWritten(context, SECRETS, async (secret) => {
    if (secret.metadata.namespace !== KUBE_SYSTEM || textOf(secret, 'type') !== 'bootstrap.kubernetes.io/token') return;
    const expires = expiryOf(secret);
    if (expires !== null) await deleteAt(context, secret, expires);
  });
}

async function deleteAt({ store, registry, clock, signal }: ControllerContext, secret: KubeObject, expires: Date): Promise<void> {
  const { namespace = '', name, uid } = secret.metadata;
  for (let left = expires.getTime() - clock.now().getTime(); left > 0; left = expires.getTime() - clock.now().getTime()) {
    await clock.sleep(Math.min(left, LONGEST_SLEEP_MS), signal);
  }
  const current = store.get(SECRETS, namespace, name);
  // The expiration may have been extended meanwhile.
  if (current === null || current.metadata.uid !== uid || expiryOf(current)?.getTime() !== expires.getTime()) return;
  registry.delete(SECRETS, { namespace, name }, {}, { user: CONTROLLER });
}
