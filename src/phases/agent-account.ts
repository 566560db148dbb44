import { type AgentAccount, type AgentRights, agentAccount } from '../core/dynamic/agent/account.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { refOf } from '../core/kubernetes/object-ref.ts';
import { diffRbac } from '../core/kubernetes/rbac-diff.ts';
import { definePhase } from '../engine/phase.ts';
import { findObjects } from './find-objects.ts';

type Found = readonly { readonly wanted: KubeObject; readonly found: KubeObject | null }[];

/** Makes the account of one node's agent, with what it may do. */
export const agentAccountPhase = definePhase<AgentRights | null, Found>({
  name: 'agent-account',
  short: "Make the agent's account, with the least it needs",
  observe: findAccount,
  plan: (objects, input) => {
    if (input === null) return { changes: [] };
    const changes = objects.flatMap(({ wanted, found }) => diffRbac(found, wanted));
    return changes.length === 0 ? { changes, noop: 'the account may do what it needs, and no more' } : { changes };
  },
});

/** Takes the account away: all its tokens are worth nothing from then on. */
export const agentAccountRemoval = definePhase<AgentAccount | null, Found>({
  name: 'agent-account',
  short: "Delete the agent's account, and so its tokens",
  // What there is has the same names whatever it allows.
  observe: (context, input) => findAccount(context, input === null ? null : { ...input, isProxied: false }),
  plan: (objects, input) => {
    if (input === null) return { changes: [] };
    const there = objects.filter(({ found }) => found !== null);
    const changes = there.map(({ wanted }) => ({ kind: 'delete-object', ref: refOf(wanted), because: 'its agent is gone' }) as const);
    return changes.length === 0 ? { changes, noop: 'there is no account' } : { changes };
  },
});

async function findAccount(
  { cluster }: { readonly cluster: Parameters<typeof findObjects>[0] | null },
  input: AgentRights | null,
): Promise<Found> {
  if (input === null || cluster === null) return [];
  const wanted = agentAccount(input);
  const found = await findObjects(cluster, wanted);
  return wanted.map((object, i) => ({ wanted: object, found: found[i] ?? null }));
}
