import type { LocalResponse } from '../../base/local-server.ts';
import type { ControllerMetrics } from './metrics.ts';

/**
 * The response to a GET of `/healthz`, `/readyz` or `/metrics`; null: another path. A controller is ready if it is the leader or
 * knows the leader.
 * @param state.issue why the last request for the Lease failed; null: it did not
 */
export function answerRequest(
  path: string,
  { issue, metrics }: { readonly issue: string | null; readonly metrics: ControllerMetrics },
): LocalResponse | null | Promise<LocalResponse> {
  const type = 'text/plain; charset=utf-8';
  if (path === '/healthz') return { status: 200, type, body: 'ok\n' };
  if (path === '/readyz') return issue === null ? { status: 200, type, body: 'ok\n' } : { status: 503, type, body: `${issue}\n` };
  if (path !== '/metrics') return null;
  return metrics.text().then((body) => ({ status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body }));
}
