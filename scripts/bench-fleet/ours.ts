// A contestant in a separate process: applies the work with kubeletadm's modules, like an apply: facts, plan,
// changes over one connection per host. Without the host lock unless requested, and without a confirmed
// commit, which needs a kubelet.
//
//   node ours.mjs JOB.json    prints {"changed":…,"failed":[…],"rssMiB":…}
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { systemClock } from '../../src/base/adapters/clock-system.ts';
import { applyHostChanges } from '../../src/host/apply.ts';
import { asRoot } from '../../src/host/as-root.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { HostChange } from '../../src/host/plan/change.ts';
import { diffFile } from '../../src/host/plan/diff-file.ts';
import { runHost } from '../../src/host/run-host.ts';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { sshShared, sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { workFiles } from './work.ts';

/** The job from the bench. */
export interface Job {
  /** With `:port` if it differs from the default. */
  readonly addresses: readonly string[];
  readonly port: number;
  readonly user: string;
  readonly identityFile: string;
  readonly knownHostsFile: string;
  readonly rootsDirectory: string;
  /** Whether each host is locked while it is changed. */
  readonly locks: boolean;
  /** Maximum number of parallel hosts. */
  readonly forks: number;
  readonly connectTimeoutMs: number;
  /** Address of a jump host that answers on the same port, or on `bastionPort`. */
  readonly bastion?: { readonly address: string; readonly port: number };
}

export interface Outcome {
  readonly changed: number;
  readonly failed: readonly string[];
  readonly rssMiB: number;
  /** From the start of the process until the last reachable host finished. */
  readonly doneMs: number;
  readonly cpuMs: number;
}

const shared = sshShared();
const hostKeys = knownHostsStore();
const reporter = { report: () => undefined };
const owner = { id: randomBytes(8).toString('hex'), name: 'bench', processId: process.pid, machine: hostname() };
const LOCKING = { owner, breakLock: false, isGone: () => false, confirm: null };

async function bring(address: string, job: Job): Promise<boolean> {
  const ssh = sshTransport(targetOf(address, job), { hostKeys, shared });
  const host = hostOverTransport(asRoot(ssh, { become: 'auto' }), {
    rootDir: `${job.rootsDirectory}/${address}`,
    nonce: () => randomUUID(),
  });
  try {
    const files = workFiles(address);
    const found = await host.query(Object.fromEntries(files.map(({ path }) => [path, { kind: 'file', path } as const])));
    const writes = files.flatMap((file) => diffFile(found[file.path] ?? null, { ...file, owner: 'root:root' }) ?? []);
    if (writes.length === 0) return false;
    const restart: HostChange = { kind: 'restart-unit', unit: 'kubelet', reason: 'its files changed' };
    const run = runHost(host, { clock: systemClock, ...(job.locks ? { writing: LOCKING } : {}) });
    await applyHostChanges(run, [...writes, restart], { reporter, phase: 'bench', isLast: true });
    await run.end();
    return true;
  } finally {
    await host.close();
  }
}

function targetOf(address: string, job: Job, hop: SshTarget | null = hopOf(job)): SshTarget {
  const [hostName = '', port] = address.split(':');
  return {
    name: address,
    hostName,
    user: job.user,
    port: port === undefined ? job.port : Number(port),
    identityFiles: [job.identityFile],
    identitiesOnly: true,
    identityAgent: null,
    proxyJump: hop === null ? [] : [hop],
    userKnownHostsFiles: [job.knownHostsFile],
    globalKnownHostsFiles: [],
    strictHostKeyChecking: 'yes',
    hostKeyAlias: null,
    hashKnownHosts: false,
    connectTimeoutMs: job.connectTimeoutMs,
    addressFamily: 'inet',
    bindAddress: null,
    warnings: [],
  };
}

function hopOf(job: Job): SshTarget | null {
  return job.bastion === undefined ? null : targetOf(job.bastion.address, { ...job, port: job.bastion.port }, null);
}

async function main(): Promise<void> {
  const job: Job = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
  const waiting = [...job.addresses];
  const failed: string[] = [];
  let changed = 0;
  let doneMs = 0;
  const work = async (): Promise<void> => {
    for (let address = waiting.shift(); address !== undefined; address = waiting.shift()) {
      try {
        if (await bring(address, job)) changed++;
        doneMs = Math.round(performance.now());
      } catch (error) {
        failed.push(error instanceof Error ? error.message : String(error));
      }
    }
  };
  await Promise.all(Array.from({ length: job.forks }, work));
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  const outcome: Outcome = {
    changed,
    failed,
    rssMiB: Math.round(maxRSS / 1024),
    doneMs,
    cpuMs: Math.round((userCPUTime + systemCPUTime) / 1000),
  };
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}

main();
