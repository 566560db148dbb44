import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { type ConnectionOptions, checkServerIdentity, connect } from 'node:tls';
import type { JsonObject } from '../../src/base/json.ts';
import { parseKubeconfig, resolveContext } from '../../src/kube/kubeconfig.ts';
import type { LabNetwork } from './lab-network.ts';

/** The response of an API server. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: JsonObject;
}

/** The host of a client. */
export interface ApiClientHost {
  /** The host's root directory, below which kubeconfigs and their files are. */
  readonly rootDir: string;
  readonly network: LabNetwork;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: JsonObject;
  /** Kind of a PATCH; default: a merge patch. */
  readonly patch?: 'merge' | 'strategic-merge';
}

/**
 * Sends a request to an API server with the credentials of a kubeconfig on a lab host.
 * @param file the kubeconfig, as a path of the host
 * @throws Error without a response, or for an unusable kubeconfig
 */
export async function queryApiServer(host: ApiClientHost, file: string, asked: ApiRequest): Promise<ApiAnswer> {
  const response = await send(host, file, asked);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString('utf8')) as JsonObject };
}

/**
 * Reads the events of a watch until the API server ends it or the signal is aborted.
 * @param path with its query
 * @param onEvent called after the start of the watch and after each event or several
 * @throws Error without a response, for a refused watch, or for an unusable kubeconfig
 */
export async function watchApiServer(
  host: ApiClientHost,
  file: string,
  { path, signal, onEvent }: { readonly path: string; readonly signal: AbortSignal; readonly onEvent: () => void },
): Promise<void> {
  const response = await send(host, file, { method: 'GET', path }, signal);
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`the API server refused the watch: ${response.statusCode}`);
  }
  onEvent();
  for await (const _events of response) onEvent();
}

async function send({ rootDir, network }: ApiClientHost, file: string, asked: ApiRequest, signal?: AbortSignal): Promise<IncomingMessage> {
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
    ...(payload === null
      ? {}
      : {
          'content-type': asked.method === 'PATCH' ? `application/${asked.patch ?? 'merge'}-patch+json` : 'application/json',
          'content-length': Buffer.byteLength(payload),
        }),
    ...(user?.token === undefined ? {} : { authorization: `Bearer ${user.token.reveal()}` }),
  };
  return new Promise((resolve, reject) => {
    const agent = agentFor(network, new URL(cluster.server).hostname);
    const target = { method: asked.method, headers, ...credentials, agent, ...(signal === undefined ? {} : { signal }) };
    const call = request(`${cluster.server}${asked.path}`, target, resolve);
    call.on('error', reject);
    call.end(payload ?? undefined);
  });
}

/** Connects to the address at which a lab host listens; the certificate must name the address inside the lab. */
function agentFor(network: LabNetwork, address: string): Agent | false {
  const host = network.loopbackOf(address);
  if (host === null) return false;
  const agent = new Agent();
  agent.createConnection = (options) =>
    connect({
      ...(options as ConnectionOptions),
      host,
      checkServerIdentity: (_, certificate) => checkServerIdentity(address, certificate),
    });
  return agent;
}
