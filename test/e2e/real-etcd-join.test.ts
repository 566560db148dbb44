import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCa, type KeyPair } from '../../lab/api-server/pki.ts';
import { systemClock } from '../../src/base/adapters/clock-system.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { waitUntil } from '../../src/base/wait-until.ts';
import { applyPhases } from '../../src/host/apply-phases.ts';
import { etcdMembers } from '../../src/kubeadm/adapters/etcd-members.ts';
import { checkEtcd, type EtcdJoinInput, etcdJoin, etcdManifest, etcdPromote } from '../../src/kubeadm/phases/etcd-members.ts';
import { fakeHost } from '../support/fake-host.ts';
import { freePort } from '../support/loopback.ts';
import { findRealBinaries } from '../support/real-apiserver.ts';
import { recordingReporter } from '../support/recording-reporter.ts';
import { requirement } from '../support/requirement.ts';

const binaries = findRealBinaries();
const etcd = typeof binaries === 'string' ? '' : binaries.etcd;
const etcdctl = join(dirname(etcd), 'etcdctl');
const missing = typeof binaries === 'string' ? binaries : existsSync(etcdctl) ? null : `${etcdctl} not found (KUBEBUILDER_ASSETS)`;
/** Each round takes a minute. */
const ROUNDS = Number(process.env.ETCD_JOIN_ROUNDS ?? 1);
const JOINING = ['cp-2', 'cp-3', 'cp-4'];
const BUSY = 4;
const LIMIT_MS = 120_000;
const run = promisify(execFile);

/** A member of etcd on the local host. */
interface Member {
  readonly name: string;
  readonly clientURL: string;
  readonly peerURL: string;
}

/** Adds a member to a cluster. `start` starts it with the value of `--initial-cluster`. */
type Join = (member: Member, first: Member, start: (initialCluster: string) => void) => Promise<void>;

/**
 * The members of etcd of three control planes that join at once, on a busy machine: kubeletadm against the calls of kubeadm,
 * made with etcdctl, which is the client of kubeadm.
 */
describe.skipIf(requirement('control planes that join at once', missing))('members of etcd that are added at once', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-etcd-'));
  const file = (name: string): string => join(directory, name);
  const files = { ca: file('ca.crt'), certificate: file('client.crt'), key: file('client.key') };
  const busy: ChildProcess[] = [];
  const started: ChildProcess[] = [];
  let client: KeyPair;
  let caPem = '';

  beforeAll(async () => {
    const ca = await createCa('etcd-ca');
    const server = await ca.issueServer(['127.0.0.1']);
    client = await ca.issueClient({ commonName: 'healthcheck' });
    caPem = ca.certPem;
    const contents = { 'ca.crt': caPem, 'server.crt': server.certPem, 'server.key': server.keyPem };
    for (const [name, text] of Object.entries({ ...contents, 'client.crt': client.certPem, 'client.key': client.keyPem }))
      writeFileSync(file(name), text, { mode: 0o600 });
    for (let i = 0; i < BUSY; i++) busy.push(spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }));
  });
  afterAll(() => {
    for (const process of [...busy, ...started]) process.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });

  const newMember = async (name: string): Promise<Member> => {
    const [clientPort, peerPort] = [await freePort(), await freePort()];
    return { name, clientURL: `https://127.0.0.1:${clientPort}`, peerURL: `http://127.0.0.1:${peerPort}` };
  };
  const startEtcd = ({ name, clientURL, peerURL }: Member, initialCluster: string, state: 'new' | 'existing'): void => {
    const dataDir = mkdtempSync(file('data-'));
    const flags = {
      ...{ name, 'data-dir': dataDir, 'initial-cluster': initialCluster, 'initial-cluster-state': state },
      ...{ 'listen-client-urls': clientURL, 'advertise-client-urls': clientURL },
      ...{ 'listen-peer-urls': peerURL, 'initial-advertise-peer-urls': peerURL },
      ...{ 'cert-file': file('server.crt'), 'key-file': file('server.key') },
    };
    started.push(
      spawn(
        etcd,
        Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`),
        { stdio: 'ignore' },
      ),
    );
  };
  const connect = (endpoints: readonly string[]) =>
    etcdMembers({ endpoints, caPem, certificatePem: client.certPem, keyPem: new Secret(client.keyPem), files, clock: systemClock });

  /** How many of the members that join at once are voting members in the end. */
  const joinAtOnce = async (join: Join): Promise<{ readonly voters: number; readonly errors: readonly string[] }> => {
    const first = await newMember('cp-1');
    startEtcd(first, `${first.name}=${first.peerURL}`, 'new');
    await until(async () => (await connect([first.clientURL]).health()).healthy);
    const members = [];
    for (const name of JOINING) members.push(await newMember(name));
    const joins = members.map((member) => join(member, first, (initialCluster) => startEtcd(member, initialCluster, 'existing')));
    const errors = (await Promise.allSettled(joins)).flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
    const found = await connect([first.clientURL, ...members.map(({ clientURL }) => clientURL)]).members();
    for (const process of started.splice(0)) process.kill('SIGKILL');
    return { voters: found.filter(({ isLearner, name }) => !isLearner && JOINING.includes(name)).length, errors };
  };

  const withPhases: Join = async ({ name, peerURL }, first, start) => {
    const path = '/etc/kubernetes/manifests/etcd.yaml';
    const input: EtcdJoinInput = {
      ...{ nodeName: name, peerURL, timeoutMs: LIMIT_MS, skipped: null },
      manifestFor: (members) => {
        const content = members.map((one) => `${one.name}=${one.peerURL}`).join(',');
        return { files: [{ path, content, mode: 0o600, owner: 'root:root' }], directories: [], mayChown: true };
      },
    };
    const host = fakeHost({ name, files: {} });
    const context = { host, cluster: null, etcd: connect([first.clientURL]), clock: systemClock, reporter: recordingReporter() };
    await applyPhases([checkEtcd, etcdJoin, etcdManifest], context, input, []);
    start(host.text(path));
    await applyPhases([etcdPromote], context, input, []);
  };

  /** kubeadm 1.36 util/etcd addMember and MemberPromote: each call has 2 s, and is repeated every 500 ms for two minutes. */
  const withEtcdctl: Join = async ({ name, peerURL }, first, start) => {
    const call = async (...args: readonly string[]): Promise<string> => {
      const tls = [`--cacert=${files.ca}`, `--cert=${files.certificate}`, `--key=${files.key}`];
      const { stdout } = await run(etcdctl, [
        `--endpoints=${first.clientURL}`,
        '--command-timeout=2s',
        '--dial-timeout=2s',
        ...tls,
        ...args,
      ]);
      return stdout;
    };
    const list = async (): Promise<readonly { readonly id: string; readonly name: string; readonly url: string }[]> =>
      (await call('member', 'list'))
        .trim()
        .split('\n')
        .map((line) => {
          const [id = '', , own = '', url = ''] = line.split(', ');
          return { id, name: own, url };
        });
    const own = async () => (await list()).find(({ url }) => url === peerURL);
    await until(
      async () => (await own()) !== undefined || (await call('member', 'add', name, '--learner', `--peer-urls=${peerURL}`)) !== '',
    );
    start((await list()).map((one) => `${one.url === peerURL ? name : one.name || one.id}=${one.url}`).join(','));
    await until(async () => ((await own())?.name ?? '') !== '');
    await until(async () => (await call('member', 'promote', (await own())?.id ?? '')) !== '');
  };

  it(
    'all become voting members, as with kubeadm',
    async () => {
      const counts = { kubeletadm: 0, kubeadm: 0 };
      const errors: string[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const ours = await joinAtOnce(withPhases);
        counts.kubeletadm += ours.voters;
        errors.push(...ours.errors);
        counts.kubeadm += (await joinAtOnce(withEtcdctl)).voters;
        console.log(`round ${round + 1}: ${counts.kubeletadm} of ${(round + 1) * JOINING.length}, kubeadm ${counts.kubeadm}`);
      }
      expect(errors).toEqual([]);
      expect(counts.kubeletadm).toBe(ROUNDS * JOINING.length);
      expect(counts.kubeletadm).toBeGreaterThanOrEqual(counts.kubeadm);
    },
    ROUNDS * 300_000,
  );
});

/** Repeats a call every 500 ms until it returns true, as kubeadm does; an error is final after two minutes. */
async function until(probe: () => Promise<boolean>): Promise<void> {
  await waitUntil(
    { clock: systemClock },
    {
      probe: () =>
        probe().then(
          (done) => (done ? { done } : { pending: new Error('pending') }),
          (pending: unknown) => ({ pending }),
        ),
      timeoutMs: LIMIT_MS,
      pauseMs: () => 500,
      timedOut: (failure): boolean => {
        throw failure;
      },
    },
  );
}
