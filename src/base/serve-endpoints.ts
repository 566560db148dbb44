import { AppError } from './errors.ts';
import type { ListenAddress, LocalResponse, LocalServer, LocalServers } from './local-server.ts';
import { systemErrorText } from './system-error.ts';

const WRONG_METHOD: LocalResponse = {
  status: 405,
  type: 'text/plain; charset=utf-8',
  body: 'method not allowed\n',
  headers: { allow: 'GET, HEAD' },
};

/**
 * Serves `/metrics`, `/healthz` and `/readyz`.
 * @throws AppError with the given code: it cannot listen on the address
 */
export async function serveEndpoints(
  { serveLocal }: LocalServers,
  { host, port }: ListenAddress,
  { code, answer }: { readonly code: string; readonly answer: (path: string) => LocalResponse | null | Promise<LocalResponse | null> },
): Promise<LocalServer> {
  try {
    return await serveLocal(host, port, ({ path, post }) => (post === undefined ? answer(path) : WRONG_METHOD));
  } catch (cause) {
    const message = `cannot serve /metrics on ${host}:${port}: ${systemErrorText(cause)}`;
    throw new AppError({ code, message, hint: 'Pass another address with --listen' }, { cause });
  }
}
