import { AppError } from './errors.ts';
import type { ListenAddress, LocalRequest, LocalResponse, LocalServer, LocalServers } from './local-server.ts';
import { systemErrorText } from './system-error.ts';

/**
 * Serves `/metrics`, `/healthz` and `/readyz`.
 * @throws AppError with the given code: it cannot listen on the address
 */
export async function serveEndpoints(
  { serveLocal }: LocalServers,
  { host, port }: ListenAddress,
  { code, answer }: { readonly code: string; readonly answer: (request: LocalRequest) => LocalResponse | null | Promise<LocalResponse> },
): Promise<LocalServer> {
  try {
    return await serveLocal(host, port, answer);
  } catch (cause) {
    const message = `cannot serve /metrics on ${host}:${port}: ${systemErrorText(cause)}`;
    throw new AppError({ code, message, hint: 'Pass another address with --listen' }, { cause });
  }
}
