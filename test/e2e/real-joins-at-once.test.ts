import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ETCD_PROBES, HAS_SCHEDULER, importControlPlaneImages } from '../support/control-plane-images.ts';
import { installProgram, KUBEADM_DROP_IN, type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const binaries = findRealBinaries();
const kubelet = typeof binaries === 'string' ? null : binaries.kubelet;
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;
const missing =
  whyNoKubelet() ??
  whyNoLabHosts() ??
  (kubeadm === null ? 'kubeadm not found (KUBEBUILDER_ASSETS)' : HAS_SCHEDULER ? null : 'kube-scheduler not found (KUBEBUILDER_ASSETS)');

type Program = 'kubeadm' | 'kubeletadm';
/** Each takes about three minutes for each program. */
const ROUNDS = Number(process.env.JOIN_ROUNDS ?? 1);
/** Programs that keep the machine busy meanwhile. */
const BUSY = Number(process.env.JOIN_BUSY ?? 2);
const JOINING = ['node2', 'node3', 'node4'];
const KEY = 'e6a2eb8581237ab72a4f494f30285ec12a9694d750b9785706a83bfcbbbd2204';
const IGNORED = '--ignore-preflight-errors=SystemVerification,Swap,FileExisting-losetup,ImagePull,Mem,NumCPU';
const KUBECTL = 'kubectl --kubeconfig /etc/kubernetes/admin.conf';

/** Three control planes join a cluster of one at the same time, on a busy machine: as many succeed as with kubeadm. */
describe.skipIf(requirement('control planes that join at once', missing))('control planes that join at once', () => {
  let lab: LabHosts;
  const busy: ChildProcess[] = [];
  beforeAll(() => {
    if (typeof binaries === 'string' || kubelet === null) return;
    lab = startLabHosts(1 + JOINING.length, kubelet, 'control-plane');
    importControlPlaneImages(lab, binaries);
    execFileSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { cwd: ROOT, stdio: 'ignore' });
    for (const host of lab.names) {
      lab.run(host, KUBEADM_DROP_IN);
      lab.run(host, 'mkdir -p /opt/kubeadm /opt/kubeletadm /root/patches');
      lab.put(host, '/opt/kubeadm/kubeadm', readFileSync(kubeadm ?? ''));
      lab.put(host, '/usr/local/bin/node', readFileSync(process.execPath));
      installProgram(lab, host, join(ROOT, 'dist'));
      lab.run(host, 'ln -sf /usr/local/lib/kubeletadm/kubeletadm.mjs /opt/kubeletadm/kubeletadm');
      lab.put(host, '/root/patches/etcd.yaml', ETCD_PROBES);
      lab.put(host, '/root/config.yaml', config(lab.address('node1'), lab.address(host)));
    }
    for (const program of ['kubectl', 'etcdctl'])
      lab.put('node1', `/usr/local/bin/${program}`, readFileSync(join(process.env.KUBEBUILDER_ASSETS ?? '', program)));
    for (let i = 0; i < BUSY; i++) busy.push(spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }));
  }, 900_000);
  afterAll(() => {
    for (const process of busy) process.kill('SIGKILL');
    lab?.close();
  }, 120_000);

  /** Starts a command on a host. `exitCode` waits for its end. */
  const start = (host: string, line: string): void => {
    const record = `(${line} </dev/null >/root/run.log 2>&1; echo $? >/root/run.rc)`;
    lab.run(host, `rm -f /root/run.rc; setsid sh -c '${record}' >/dev/null 2>&1 </dev/null &`);
  };
  const exitCode = (host: string): string => {
    const wait = 'for i in $(seq 400); do [ -s /root/run.rc ] && break; sleep 0.1; done; cat /root/run.rc 2>/dev/null || true';
    for (let i = 0; i < 15; i++) {
      const code = lab.run(host, wait).trim();
      if (code !== '') return code;
    }
    return 'none after ten minutes';
  };
  const voters = (): number => {
    const tls = '--endpoints=https://127.0.0.1:2379 --cacert=ca.crt --cert=server.crt --key=server.key';
    const list = lab.run('node1', `cd /etc/kubernetes/pki/etcd && etcdctl ${tls} --command-timeout=30s member list`).trim().split('\n');
    return list.filter((member) => /, started, .*, false$/.test(member)).length;
  };

  /** Which hosts did not become control planes, and why; empty when all did. */
  const joinAtOnce = (program: Program): readonly string[] => {
    for (const host of lab.names) lab.run(host, CLEAN);
    start('node1', `/opt/${program}/${program} init --config /root/config.yaml --upload-certs ${IGNORED}`);
    expect(exitCode('node1'), lab.run('node1', 'tail -30 /root/run.log')).toBe('0');
    for (const host of JOINING) start(host, `/opt/${program}/${program} join --config /root/config.yaml ${IGNORED}`);
    const failed = JOINING.flatMap((host) => {
      const code = exitCode(host);
      return code === '0' ? [] : [`${program} on ${host}: exit code ${code}: ${lab.run(host, 'tail -15 /root/run.log')}`];
    });
    if (failed.length > 0) return failed;
    const labelled = lab.run('node1', `${KUBECTL} get nodes -l node-role.kubernetes.io/control-plane -o name`).trim().split('\n');
    const missing = JOINING.filter((host) => !labelled.includes(`node/${host}`)).map((host) => `${program}: ${host} is no control plane`);
    const absent = Array.from({ length: 1 + JOINING.length - voters() }, () => `${program}: an etcd member does not vote`);
    return missing.length > 0 ? missing : absent;
  };

  it(
    'succeed as often as with kubeadm',
    () => {
      const counts = { kubeletadm: 0, kubeadm: 0 };
      const failures: string[] = [];
      for (let round = 1; round <= ROUNDS; round++) {
        for (const program of ['kubeletadm', 'kubeadm'] as const) {
          const started = performance.now();
          const failed = joinAtOnce(program);
          counts[program] += JOINING.length - failed.length;
          if (program === 'kubeletadm') failures.push(...failed);
          const seconds = Math.round((performance.now() - started) / 1000);
          console.log(`round ${round}: ${program} ${counts[program]} of ${round * JOINING.length} (${seconds} s)\n${failed.join('\n')}`);
        }
      }
      expect(counts.kubeadm, 'kubeadm joined no control plane: the comparison shows nothing').toBeGreaterThan(0);
      expect(counts.kubeletadm, failures.join('\n')).toBeGreaterThanOrEqual(counts.kubeadm);
    },
    ROUNDS * 1_500_000,
  );
});

/** Ends all containers, and removes the files and state of both programs. */
const CLEAN = `
systemctl disable -q --now kubelet 2>/dev/null
for id in $(ctr -n k8s.io tasks ls -q); do ctr -n k8s.io tasks kill -s KILL $id 2>/dev/null; done
sleep 1
for id in $(ctr -n k8s.io containers ls -q); do ctr -n k8s.io tasks rm -f $id 2>/dev/null; ctr -n k8s.io containers rm $id 2>/dev/null; done
for m in $(awk '$2 ~ "^/var/lib/kubelet/" {print $2}' /proc/mounts); do umount $m; done
rm -rf /etc/kubernetes /var/lib/kubelet /var/lib/etcd /var/lib/kubeletadm /etc/systemd/system/kubelet.service*
systemctl daemon-reload
`;

/** One file for all: init reads it on node1, join on the others. */
const config = (server: string, own: string): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: abcdef.0123456789abcdef}]
certificateKey: ${KEY}
localAPIEndpoint: {advertiseAddress: ${own}}
nodeRegistration: {imagePullPolicy: Never}
patches: {directory: /root/patches}
timeouts: {controlPlaneComponentHealthCheck: 5m}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
controlPlaneEndpoint: ${server}:6443
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
nodeRegistration: {imagePullPolicy: Never}
controlPlane: {localAPIEndpoint: {advertiseAddress: ${own}}, certificateKey: ${KEY}}
discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "${server}:6443", unsafeSkipCAVerification: true}}
patches: {directory: /root/patches}
timeouts: {controlPlaneComponentHealthCheck: 5m}
`;
