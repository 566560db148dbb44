import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterState, hostState } from '../support/cluster-state.ts';
import { ETCD_PROBES, HAS_SCHEDULER, importControlPlaneImages } from '../support/control-plane-images.ts';
import { installProgram, KUBEADM_DROP_IN, type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { seededRandom } from '../support/seeded-random.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const binaries = findRealBinaries();
const kubelet = typeof binaries === 'string' ? null : binaries.kubelet;
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;
const missing =
  whyNoKubelet() ??
  whyNoLabHosts() ??
  (kubeadm === null ? 'kubeadm not found (KUBEBUILDER_ASSETS)' : HAS_SCHEDULER ? null : 'kube-scheduler not found (KUBEBUILDER_ASSETS)');

type Program = 'kubeadm' | 'kubeletadm';
/** Which program runs the phase of a number. */
type Draw = (phase: number) => Program;

const byChance = (seed: number): Draw => {
  const random = seededRandom(seed);
  return () => (random() < 0.5 ? 'kubeadm' : 'kubeletadm');
};
/** The first two run by default; `SEEDS=n` runs n, `SEEDS=name,name` those. Each takes two minutes. */
const DRAWS: Readonly<Record<string, Draw>> = {
  alternating: (phase) => (phase % 2 === 0 ? 'kubeletadm' : 'kubeadm'),
  'seed 1': byChance(1),
  kubeletadm: () => 'kubeletadm',
  kubeadm: () => 'kubeadm',
  'kubeadm first': (phase) => (phase % 2 === 0 ? 'kubeadm' : 'kubeletadm'),
  ...Object.fromEntries([2, 3, 4, 5, 6, 7, 8].map((seed) => [`seed ${seed}`, byChance(seed)])),
};
const SEEDS = process.env.SEEDS ?? '2';
const NAMES = /^\d+$/.test(SEEDS) ? Object.keys(DRAWS).slice(0, Number(SEEDS)) : SEEDS.split(',');

const KEY = 'e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204';
const IGNORED = '--ignore-preflight-errors=SystemVerification,Swap,FileExisting-losetup,ImagePull,Mem,NumCPU';
const INIT = [
  `preflight CONFIG ${IGNORED}`,
  ...['ca', 'apiserver', 'apiserver-kubelet-client', 'front-proxy-ca', 'front-proxy-client'].map((name) => `certs ${name} CONFIG`),
  ...['etcd-ca', 'etcd-server', 'etcd-peer', 'etcd-healthcheck-client', 'apiserver-etcd-client', 'sa'].map(
    (name) => `certs ${name} CONFIG`,
  ),
  ...['admin', 'super-admin', 'kubelet', 'controller-manager', 'scheduler'].map((name) => `kubeconfig ${name} CONFIG`),
  'etcd local CONFIG',
  ...['apiserver', 'controller-manager', 'scheduler'].map((name) => `control-plane ${name} CONFIG`),
  'kubelet-start CONFIG',
  'wait-control-plane',
  ...['kubeadm', 'kubelet'].map((name) => `upload-config ${name} CONFIG`),
  `upload-certs --upload-certs --certificate-key ${KEY}`,
  'mark-control-plane CONFIG',
  'bootstrap-token CONFIG',
  'kubelet-finalize all CONFIG',
  ...['coredns', 'kube-proxy'].map((name) => `addon ${name} CONFIG`),
  'wait-control-plane',
].map((words) => `init phase ${words.replace('CONFIG', '--config /root/init.yaml')}`);
const joinPhases = (file: string, phases: readonly string[]): readonly string[] =>
  phases.map((words) => `join phase ${words.replace('CONFIG', `--config /root/${file}`)}`);
/** kubeadm cannot run kubelet-wait-bootstrap alone on a worker: it demands admin.conf. */
const JOIN_WORKER = joinPhases('worker.yaml', [`preflight CONFIG ${IGNORED}`, 'kubelet-start CONFIG']);
const JOIN = joinPhases('join.yaml', [
  `preflight CONFIG ${IGNORED}`,
  ...['download-certs', 'certs', 'kubeconfig', 'control-plane'].map((name) => `control-plane-prepare ${name} CONFIG`),
  'kubelet-start CONFIG',
  'etcd-join CONFIG',
  'kubelet-wait-bootstrap CONFIG',
  'control-plane-join mark-control-plane CONFIG',
  'wait-control-plane',
]);
const UPGRADE_WORKER = [`preflight ${IGNORED}`, 'kubelet-config', 'addon coredns', 'addon kube-proxy', 'post-upgrade'].map(
  (words) => `upgrade node phase ${words}`,
);
const UPGRADE = UPGRADE_WORKER.toSpliced(1, 0, 'upgrade node phase control-plane --etcd-upgrade=false');
const RESET = ['preflight --force', 'remove-etcd-member', 'cleanup-node'].map((words) => `reset phase ${words}`);

/** Each phase runs alone, by kubeadm or by kubeletadm, on the files and objects that the phases before it left. */
describe.skipIf(requirement('phases of kubeadm and kubeletadm in turn', missing))('phases of both programs in turn', () => {
  let lab: LabHosts;
  beforeAll(() => {
    if (typeof binaries === 'string' || kubelet === null) return;
    lab = startLabHosts(2, kubelet, 'control-plane');
    importControlPlaneImages(lab, binaries);
    execFileSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { cwd: ROOT, stdio: 'ignore' });
    const server = lab.address('node1');
    for (const host of lab.names) {
      lab.run(host, KUBEADM_DROP_IN);
      lab.run(host, 'mkdir -p /opt/kubeadm /opt/kubeletadm /root/patches');
      lab.put(host, '/opt/kubeadm/kubeadm', readFileSync(kubeadm ?? ''));
      lab.put(host, '/usr/local/bin/node', readFileSync(process.execPath));
      installProgram(lab, host, join(ROOT, 'dist'));
      lab.run(host, 'ln -sf /usr/local/lib/kubeletadm/kubeletadm.mjs /opt/kubeletadm/kubeadm');
      lab.put(host, '/root/patches/etcd.yaml', ETCD_PROBES);
      lab.put(host, '/root/init.yaml', initConfig(server));
      lab.put(host, '/root/worker.yaml', joinConfig(server, ''));
      const controlPlane = `controlPlane: {localAPIEndpoint: {advertiseAddress: ${lab.address(host)}}, certificateKey: ${KEY}}\n`;
      lab.put(host, '/root/join.yaml', joinConfig(server, controlPlane));
    }
    for (const program of ['kubectl', 'etcdctl'])
      lab.put('node1', `/usr/local/bin/${program}`, readFileSync(join(process.env.KUBEBUILDER_ASSETS ?? '', program)));
  }, 900_000);
  afterAll(() => lab?.close(), 120_000);

  /** What ran until now, and what failed of it. */
  let story: string[] = [];
  let failed: string[] = [];
  const exitCode = (host: string, program: Program, line: string): string => {
    const record = `(/opt/${program}/kubeadm ${line} </dev/null >/root/phase.log 2>&1; echo $? >/root/phase.rc)`;
    lab.run(host, `rm -f /root/phase.rc; setsid sh -c '${record}' >/dev/null 2>&1 </dev/null &`);
    // A busy machine needs minutes to start a control plane.
    const wait = 'for i in $(seq 400); do [ -s /root/phase.rc ] && break; sleep 0.1; done; cat /root/phase.rc 2>/dev/null || true';
    for (let i = 0; i < 8; i++) {
      const code = lab.run(host, wait).trim();
      if (code !== '') return code;
    }
    return 'none after five minutes';
  };
  const run = (host: string, lines: readonly string[], draw: Draw): void => {
    for (const line of lines) {
      let program = draw(story.length);
      for (;;) {
        story.push(`${host} ${program.padEnd(10)} ${line}`);
        const code = exitCode(host, program, line);
        if (code === '0') break;
        failed.push(`${program} ${line}: exit code ${code}: ${lab.run(host, 'tail -30 /root/phase.log')}`);
        if (program === 'kubeadm') throw new Error([...failed, ...story].join('\n'));
        program = 'kubeadm';
      }
    }
  };
  /** kubeadm gives the API server one minute in wait-control-plane, in which a busy machine does not start it. */
  const untilStarted = (host: string): void => {
    const probe = `for i in $(seq 40); do curl -ksf -o /dev/null https://${lab.address(host)}:6443/livez && echo up && break; sleep 1; done`;
    let found = '';
    for (let i = 0; i < 6 && found === ''; i++) found = lab.run(host, `${probe}; true`).trim();
    expect(found, lab.run(host, 'journalctl -u kubelet -n 25 --no-pager -o cat; ctr -n k8s.io tasks ls')).toBe('up');
  };
  const etcdMembers = (): readonly string[] => {
    const tls = '--endpoints=https://127.0.0.1:2379 --cacert=ca.crt --cert=server.crt --key=server.key';
    const list = lab.run('node1', `cd /etc/kubernetes/pki/etcd && etcdctl ${tls} member list`);
    return list
      .trim()
      .replace(/^\w+, /gm, '')
      .split('\n')
      .sort();
  };

  /** A whole life of a cluster: init, a worker, another control plane, upgrades, resets. */
  const life = (draw: Draw): ReadonlyMap<string, string> => {
    story = [];
    failed = [];
    const found = new Map<string, string>();
    const keep = (when: string, state: Iterable<readonly [string, unknown]>): void => {
      for (const [key, value] of state) found.set(`${when}: ${key}`, comparableText(value));
    };
    const keepAll = (when: string, host: string): void => {
      keep(when, hostState(lab, host));
      keep(when, clusterState(lab, 'node1'));
      keep(when, [['etcd', etcdMembers()]]);
    };
    const started = INIT.findIndex((line) => line.endsWith('wait-control-plane'));
    run('node1', INIT.slice(0, started), draw);
    untilStarted('node1');
    run('node1', INIT.slice(started), draw);
    keepAll('init', 'node1');
    run('node2', JOIN_WORKER, draw);
    lab.run('node2', 'for i in $(seq 50); do [ -s /etc/kubernetes/kubelet.conf ] && break; sleep 1; done');
    lab.run('node1', 'kubectl --kubeconfig /etc/kubernetes/admin.conf wait --for=create --timeout=50s node/node2');
    keepAll('worker', 'node2');
    run('node2', UPGRADE_WORKER, draw);
    keepAll('upgraded worker', 'node2');
    run('node2', RESET, draw);
    keepAll('reset worker', 'node2');
    lab.run('node1', 'kubectl --kubeconfig /etc/kubernetes/admin.conf delete node node2');
    run('node2', JOIN, draw);
    keepAll('control plane', 'node2');
    run('node2', UPGRADE, draw);
    keepAll('upgraded control plane', 'node2');
    run('node2', RESET, draw);
    keepAll('reset control plane', 'node2');
    run('node1', RESET, draw);
    keep('reset', hostState(lab, 'node1'));
    // kubeadm removes the data of etcd only if both phases run in one process.
    for (const host of lab.names) lab.run(host, 'rm -rf /var/lib/etcd /etc/kubernetes /var/lib/kubeletadm');
    return found;
  };

  let desired: ReadonlyMap<string, string>;
  it('are run by kubeadm alone', () => {
    desired = life(() => 'kubeadm');
  }, 900_000);

  it.each(NAMES)(
    'end as those of kubeadm alone: %s',
    (name) => {
      const found = life(DRAWS[name] as Draw);
      const different = [...new Set([...desired.keys(), ...found.keys()])].filter((key) => desired.get(key) !== found.get(key));
      const shown = different.map((key) => `${key}\n  kubeadm: ${desired.get(key)}\n  found:   ${found.get(key)}`);
      expect([...failed, ...shown], story.join('\n')).toEqual([]);
    },
    900_000,
  );
});

/** Without CAs, and with the members of etcd by name: etcd lists them by IDs that depend on the time. */
const comparableText = (value: unknown): string =>
  JSON.stringify(value)
    .replace(/("certificate-authority-data":)"[^"]*"/g, '$1"a CA"')
    .replace(/(?<=--initial-cluster=)[^"]*/g, (members) => members.split(',').sort().join(','));

const initConfig = (address: string): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: abcdef.0123456789abcdef}]
localAPIEndpoint: {advertiseAddress: ${address}}
nodeRegistration: {imagePullPolicy: Never}
patches: {directory: /root/patches}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
controlPlaneEndpoint: ${address}:6443
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
`;

const joinConfig = (server: string, controlPlane: string): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
nodeRegistration: {imagePullPolicy: Never}
${controlPlane}discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "${server}:6443", unsafeSkipCAVerification: true}}
patches: {directory: /root/patches}
`;
