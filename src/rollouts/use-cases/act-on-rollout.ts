import * as z from 'zod';
import { isAppError } from '../../base/errors.ts';
import { type FieldChange, formatFieldChange } from '../../host/plan/impact.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { withoutWrites } from '../../kube/without-writes.ts';
import { revisionChanges, setPaused, undoRollout } from './rollout-revisions.ts';

const ACTION = z.discriminatedUnion('action', [
  z.strictObject({ action: z.enum(['pause', 'resume']), rollout: z.string() }),
  z.strictObject({ action: z.enum(['undo', 'preview-undo']), rollout: z.string(), toRevision: z.int() }),
  z.strictObject({ action: z.literal('diff'), rollout: z.string(), revision: z.int(), toRevision: z.int() }),
]);

/** `message`: what was changed. `fields`: what differs or would change; null: unknown. `problem`: why nothing was changed. */
type ActionResult =
  | { readonly message: string }
  | { readonly fields: readonly { readonly text: string; readonly impact: string; readonly why: string }[] | null }
  | { readonly problem: string };

/**
 * Executes an action that the page of rollouts requests: `pause`, `resume`, `undo`, `preview-undo` (returns the changed fields) or
 * `diff` of two revisions. Errors of the cluster and of an unknown action are results.
 * @param request JSON from the network
 */
export async function actOnRollout(cluster: Cluster, request: unknown): Promise<ActionResult> {
  const { data } = ACTION.safeParse(request);
  if (data === undefined) return { problem: 'the request is not an action of this page' };
  try {
    return await execute(cluster, data);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { problem: error.message };
  }
}

async function execute(cluster: Cluster, request: z.output<typeof ACTION>): Promise<ActionResult> {
  const { rollout, action } = request;
  if (action === 'diff') return { fields: fieldsOf((await revisionChanges(cluster, rollout, request)).fields) };
  if (action === 'preview-undo') return { fields: fieldsOf((await undoRollout(withoutWrites(cluster), rollout, request)).fields) };
  if (action === 'undo') {
    const { isPresent } = await undoRollout(cluster, rollout, request);
    const revision = `revision ${request.toRevision}`;
    return { message: `rollout ${rollout}: ${isPresent ? `unchanged, its payload is that of ${revision}` : `rolled back to ${revision}`}` };
  }
  const isChanged = await setPaused(cluster, rollout, action === 'pause');
  return { message: `rollout ${rollout}: ${isChanged ? '' : 'unchanged, already '}${action === 'pause' ? 'paused' : 'resumed'}` };
}

function fieldsOf(changes: readonly FieldChange[] | null) {
  return changes?.map((change) => ({ text: formatFieldChange(change), impact: change.impact, why: change.why ?? '' })) ?? null;
}
