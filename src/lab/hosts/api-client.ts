import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import type { JsonObject } from '../../base/json.ts';
import { parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';

/** The response of an API server. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: JsonObject;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly path: string;
  readonly body?: JsonObject;
}

/**
 * Sends a request to an API server with the credentials of a kubeconfig on a lab host.
 * @param rootDir the host's root directory, below which the kubeconfig's files are
 * @param file the kubeconfig, as a path of the host
 * @throws Error without a response, or for an unusable kubeconfig
 */
export async function queryApiServer(rootDir: string, file: string, asked: ApiRequest): Promise<ApiAnswer> {
  const read = (path: string): string => readFileSync(join(rootDir, path), 'utf8');
  const { cluster, user } = resolveContext(parseKubeconfig(read(file), file));
  const decode = (data: string): string => Buffer.from(data, 'base64').toString('utf8');
  const credentials = {
    ...(cluster.caData === undefined ? {} : { ca: decode(cluster.caData) }),
    ...(user?.certFile === undefined ? {} : { cert: read(user.certFile), key: read(user.keyFile ?? user.certFile) }),
    ...(user?.certData === undefined || user.keyData === undefined
      ? {}
      : { cert: decode(user.certData), key: decode(user.keyData.reveal()) }),
  };
  const payload = asked.body === undefined ? null : JSON.stringify(asked.body);
  const headers = {
    accept: 'application/json',
    ...(payload === null ? {} : { 'content-type': asked.method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' }),
    ...(user?.token === undefined ? {} : { authorization: `Bearer ${user.token.reveal()}` }),
  };
  return new Promise((resolve, reject) => {
    const call = request(`${cluster.server}${asked.path}`, { method: asked.method, headers, ...credentials, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        try {
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString('utf8')) as JsonObject });
        } catch (error) {
          reject(error);
        }
      });
    });
    call.on('error', reject);
    call.end(payload ?? undefined);
  });
}
