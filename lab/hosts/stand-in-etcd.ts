import { createServer } from 'node:https';
import type { JsonObject } from '../../src/base/json.ts';
import { flagValue } from '../../src/kubeadm/control-plane/component-endpoints.ts';

export interface StandInEtcd {
  close(): Promise<void>;
}

/**
 * Starts the client port of an etcd cluster with one member: its member list and its health, over TLS with client
 * certificates. The objects of the API server are not in it.
 * @param words the command line of etcd
 * @param read reads a file of the host
 * @throws Error for missing or invalid files
 * @see etcd 3.6 api/etcdserverpb/rpc.proto (Cluster), GET /health
 */
export function startStandInEtcd(
  words: readonly string[],
  { host, port, read }: { readonly host: string; readonly port: number; readonly read: (path: string) => string },
): Promise<StandInEtcd> {
  const flag = (name: string): string => flagValue(words, name) ?? '';
  const urls = (name: string): readonly string[] => flag(name).split(',');
  const member = { ID: '1', name: flag('name'), peerURLs: urls('initial-advertise-peer-urls'), clientURLs: urls('advertise-client-urls') };
  const answers: Readonly<Record<string, JsonObject>> = {
    '/v3/cluster/member/list': { members: [member] },
    '/health': { health: 'true', reason: '' },
  };
  const files = { cert: read(flag('cert-file')), key: read(flag('key-file')), ca: read(flag('trusted-ca-file')) };
  const server = createServer({ ...files, requestCert: true }, ({ url = '' }, response) => {
    const answer = answers[url];
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { message: 'Not Found' }));
  });
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return new Promise((resolve, reject) => server.once('error', reject).listen(port, host, () => resolve({ close })));
}
