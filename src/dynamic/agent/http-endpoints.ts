import type { LocalAnswer } from '../ports.ts';
import { type AccessProblem, describeAccess } from './access-problem.ts';
import { renderAgentMetrics } from './metrics.ts';
import type { AgentState } from './state.ts';

/** HTTP endpoints of the agent. */
export interface Shown {
  readonly state: AgentState | null;
  readonly isNodeKnown: boolean;
  readonly access: readonly AccessProblem[];
}

/**
 * The response to a GET of `/healthz`, `/readyz` or `/metrics`; null: another path. `/readyz` lists the
 * requests that the API server rejects.
 */
export function answer(path: string, { state, isNodeKnown, access }: Shown): LocalAnswer | null {
  const type = 'text/plain; charset=utf-8';
  if (path === '/healthz') return state === null ? { status: 503, type, body: 'starting\n' } : { status: 200, type, body: 'ok\n' };
  if (path === '/readyz' && access.length > 0)
    return { status: 503, type, body: access.map((problem) => `${describeAccess(problem)}\n`).join('') };
  if (path === '/readyz')
    return isNodeKnown
      ? { status: 200, type, body: 'ok\n' }
      : { status: 503, type, body: 'the agent cannot read its Node: the API server does not respond, or the Node does not exist\n' };
  if (path === '/metrics' && state !== null)
    return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: renderAgentMetrics(state) };
  return null;
}
