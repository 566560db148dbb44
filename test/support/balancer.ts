import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { LabHosts } from './lab-hosts.ts';

const PROGRAM = fileURLToPath(new URL('tcp-balancer.mjs', import.meta.url));

export interface Balancer {
  /** `10.78.1.1:6443`: the gateway of the lab network. */
  readonly address: string;
  close(): void;
}

/** Starts a load balancer for a port of lab hosts, as in front of the API servers of several control planes. */
export async function startBalancer(lab: LabHosts, hosts: readonly string[], port: number): Promise<Balancer> {
  const targets = hosts.map((host) => `${lab.address(host)}:${port}`);
  const address = `${lab.address('node1').replace(/\d+$/, '1')}:${port}`;
  const child = spawn('nsenter', [`--net=/run/netns/${lab.namespace}`, process.execPath, PROGRAM, address, ...targets], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'close').then(() => Promise.reject(new Error(`the load balancer of ${address} ended`))),
  ]);
  return { address, close: () => void child.stdin.end() };
}
