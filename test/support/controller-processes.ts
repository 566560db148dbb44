import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { JsonObject } from '../../src/base/json.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { CONTROLLER_USER } from './controller-account.ts';
import { freePorts, type RealApiServer } from './real-apiserver.ts';
import { builtProgram } from './run-bundle.ts';

/** A controller of the built program as a separate process, with a token of the ServiceAccount of the controller. */
export interface ControllerProcess {
  /** The id of its token in the audit log. */
  readonly id: string;
  readonly child: ChildProcess;
  output(): string;
  /** The answer at `/metrics`. */
  metrics(): Promise<string>;
  stop(): Promise<void>;
}

/** @param server the address of the API server for this controller */
export async function startController(api: RealApiServer, directory: string, server: string): Promise<ControllerProcess> {
  const kubectl = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubectl');
  const account = ['create', 'token', 'kubeletadm-controller', '-n', 'kubeletadm-system', '--duration=8h'];
  const token = execFileSync(kubectl, ['--kubeconfig', join(directory, 'admin.conf'), ...account], { encoding: 'utf8' }).trim();
  const { jti } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')) as { readonly jti: string };
  const kubeconfig = join(directory, `controller-${jti}.conf`);
  writeFileSync(kubeconfig, api.kubeconfigWithToken(token).replace(api.url, server), { mode: 0o600 });
  const [port] = await freePorts(1);
  const listen = `127.0.0.1:${port}`;
  const child = spawn(process.execPath, [builtProgram(), 'controller', '--kubeconfig', kubeconfig, '--listen', listen]);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  const ended = once(child, 'close');
  return {
    id: `JTI=${jti}`,
    child,
    output: () => output,
    metrics: async () => (await fetch(`http://${listen}/metrics`, { signal: AbortSignal.timeout(2_000) })).text(),
    stop: async () => {
      child.kill('SIGCONT');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** An address in front of API servers, as of a load balancer. Connections that exist stay at their API server. */
export async function startFrontend(first: string): Promise<{ readonly url: string; to(url: string): void; close(): void }> {
  let { port, hostname } = new URL(first);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        other.destroy();
        sockets.delete(one);
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    url: `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    to: (url) => {
      ({ port, hostname } = new URL(url));
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A request of a controller that the API server has answered. */
export interface AuditedWrite {
  /** `ControllerProcess.id`. */
  readonly by: string;
  /** `nodes/node1`, `kubeletconfigrollouts/edge/status`, `leases/kubeletadm-controller`. */
  readonly what: string;
  readonly code: number;
  readonly body: JsonObject;
  /** `NAMESPACE/NAME` of the ConfigMap that it assigns to a Node; null: it assigns none. */
  readonly assigns: string | null;
}

/** Flags of an API server that records the writes of controllers in the directory. */
export function auditFlags(directory: string): readonly string[] {
  const rule = { level: 'Request', users: [CONTROLLER_USER.name], verbs: ['create', 'update', 'patch', 'delete'] };
  const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules: [rule, { level: 'None' }] };
  writeFileSync(join(directory, 'audit.json'), JSON.stringify(policy));
  return [`--audit-policy-file=${join(directory, 'audit.json')}`, `--audit-log-path=${join(directory, 'audit.log')}`];
}

/** The writes of controllers, in the order of their answers. */
export function auditedWrites(directory: string): readonly AuditedWrite[] {
  const lines = readFileSync(join(directory, 'audit.log'), 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => {
    const { user, objectRef, responseStatus, requestObject = {} } = JSON.parse(line) as AuditEvent;
    const { resource, name, subresource } = objectRef;
    const source = requestObject.metadata?.annotations?.[CONFIG_SOURCE_ANNOTATION];
    const assigned = source == null ? null : (JSON.parse(source) as { readonly configMap: { namespace: string; name: string } }).configMap;
    return {
      by: user.extra['authentication.kubernetes.io/credential-id']?.[0] ?? '',
      what: [resource, name, subresource].filter((part) => part !== undefined).join('/'),
      code: responseStatus.code,
      body: requestObject,
      assigns: assigned === null ? null : `${assigned.namespace}/${assigned.name}`,
    };
  });
}

interface AuditEvent {
  readonly user: { readonly extra: Readonly<Record<string, readonly string[]>> };
  readonly objectRef: { readonly resource: string; readonly name?: string; readonly subresource?: string };
  readonly responseStatus: { readonly code: number };
  readonly requestObject?: JsonObject & { readonly metadata?: { readonly annotations?: Readonly<Record<string, string | null>> } };
}
