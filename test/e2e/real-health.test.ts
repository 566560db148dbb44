import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { imageArchive } from '../support/container-images.ts';
import { adoptCluster } from '../support/first-node.ts';
import { type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { whyNoKubelet } from '../support/real-apiserver.ts';
import { type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const missing = whyNoKubelet() ?? whyNoLabHosts();
const CONFIG = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
const PAUSE = 'registry.k8s.io/pause:3.10.2';
const RESTART_GATE = 'RestartAllContainersOnContainerExits';
const SOCKET = '/run/containerd/containerd.sock';
const RESERVED = [
  ...['--set', 'systemReserved={"cpu":"100m"}', '--set', 'systemReservedCgroup=/nope'],
  ...['--set', 'enforceNodeAllocatable=["pods","system-reserved"]', '--allow', 'unsafe'],
];
const NO_CGROUP = /systemReservedCgroup \/nope: the cgroup \/nope \(cgroup driver cgroupfs\) does not exist on the host/;
const PROVIDER = ['image-credential-provider-config=/etc/nope.yaml', 'image-credential-provider-bin-dir=/usr/local/kubetlet/bin/'];
const NO_PROVIDERS =
  /--image-credential-provider-bin-dir: the directory \/usr\/local\/kubetlet\/bin\/ does not exist on the host: the kubelet would exit\./;

/** A real kubelet that exits after its first healthy answer, or before it, and runtimes without CRI. */
describe.skipIf(requirement('the health of real kubelets', missing))('the health of real kubelets', () => {
  let lab: LabHosts;
  let cluster: Cluster;
  let close: RealCluster['close'] | undefined;
  let joinWords: readonly string[] = [];
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-health-'));
  const ssh = (host: string): readonly string[] => ['--ssh-config', lab.sshConfig, '--host', host];
  const join2 = (...more: readonly string[]) => runCommand([...joinWords, ...ssh('node2'), ...more]);
  const upgrade = (node: string, ...more: readonly string[]) =>
    runCommand(['upgrade', 'node', '--kubeconfig', join(directory, 'admin.conf'), '--node-name', node, ...ssh(node), ...more]);
  const upgrade2 = (...more: readonly string[]) => upgrade('node2', ...more);
  const containerd = (config: string): void => {
    lab.run('node2', `printf '%s\n' '${config}' >/etc/containerd/config.toml && systemctl restart containerd`);
  };

  beforeAll(async () => {
    ({ cluster, lab, close } = await startRealCluster(2, directory, CONFIG));
    joinWords = await adoptCluster(directory);
    const first = await runCommand([...joinWords, ...ssh('node1')]);
    expect(first.code, first.stderr).toBe(0);
  }, 900_000);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  describe('a join is refused before anything is written', () => {
    const refused = async (message: RegExp): Promise<void> => {
      const { code, stderr } = await join2();
      expect([code, stderr]).toEqual([3, expect.stringMatching(message)]);
      expect(stderr).not.toContain('RuntimeConfig');
      expect(lab.run('node2', 'ls /etc/kubernetes 2>/dev/null || true')).toBe('');
    };

    it('by a containerd without CRI', async () => {
      const config = lab.run('node2', 'cat /etc/containerd/config.toml').trim();
      containerd('disabled_plugins = ["cri"]');
      await refused(/does not serve the CRI v1 API: its CRI plugin is disabled/);
      containerd(config);
    });

    it('by a socket that a stopped runtime has left, and by one that does not answer', async () => {
      lab.run('node2', `systemctl stop containerd; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("${SOCKET}")'`);
      await refused(/no container runtime listens on/);
      const mute = `import socket, time; s = socket.socket(socket.AF_UNIX); s.bind("${SOCKET}"); s.listen(64); time.sleep(600)`;
      lab.run('node2', `rm ${SOCKET}; systemd-run -q --unit=mute python3 -c '${mute}'; until [ -S ${SOCKET} ]; do sleep 0.1; done`);
      await refused(/does not answer within 5 s/);
      lab.run('node2', `systemctl stop mute; rm -f ${SOCKET}; systemctl start containerd`);
    });
  });

  it('a join without the directory of its credential providers is refused before anything is written', async () => {
    const { code, stderr } = await join2(...PROVIDER.flatMap((flag) => ['--kubelet-extra-args', flag]));
    expect([code, stderr]).toEqual([3, expect.stringMatching(NO_PROVIDERS)]);
    expect(lab.run('node2', 'ls /etc/kubernetes 2>/dev/null || true')).toBe('');
  });

  describe('a kubelet that exits again and again', () => {
    it('does not begin with a missing cgroup', async () => {
      const { code, stderr } = await join2(...RESERVED.slice(0, 6));
      expect([code, stderr]).toEqual([3, expect.stringMatching(NO_CGROUP)]);
      expect(lab.run('node2', 'ls /etc/kubernetes/kubelet.conf 2>/dev/null || true')).toBe('');
    });

    it('ends a join with the missing cgroup', async () => {
      const started = Date.now();
      const { code, stderr } = await join2(...RESERVED.slice(0, 6), '--ignore-preflight-errors', 'ConfigOnHost');
      expect([code, stderr]).toEqual([1, expect.stringMatching(/the limits of cgroup \/nope cannot be set.*\[KUBELET_UNHEALTHY\]/)]);
      expect(Date.now() - started).toBeLessThan(90_000);
    });

    it('does not keep a join of a working kubelet waiting', async () => {
      const { code, stderr } = await join2('--ignore-preflight-errors', 'NodeExists');
      expect(code, stderr).toBe(0);
    });

    it('rolls a running node back with the missing cgroup', async () => {
      const pid = lab.run('node2', 'systemctl show kubelet -p MainPID --value');
      const refused = await upgrade2(...RESERVED);
      expect([refused.code, refused.stderr]).toEqual([3, expect.stringMatching(NO_CGROUP)]);
      expect(lab.run('node2', 'systemctl show kubelet -p MainPID --value')).toBe(pid);
      const { code, stderr } = await upgrade2(...RESERVED, '--allow-pod-loss');
      expect([code, stderr]).toEqual([5, expect.stringMatching(/the limits of cgroup \/nope cannot be set.*\[KUBELET_UNHEALTHY\]/)]);
      expect(lab.run('node2', 'systemctl is-active kubelet; systemctl show kubelet -p NRestarts --value')).toMatch(/^active\n/);
    });

    it('starts with the cgroup of the hint', async () => {
      const { stderr } = await upgrade2(...RESERVED, '--dry-run');
      const command = /Run after each boot before the kubelet: (.+), or change systemReservedCgroup/.exec(stderr)?.[1];
      lab.run('node2', `bash -c '${command}'`);
      const { code, stderr: done } = await upgrade2(...RESERVED);
      expect(code, done).toBe(0);
    });

    it('is no success in a loop of kills after each start', async () => {
      const loop = 'while :; do systemctl is-active -q kubelet && { sleep 1.5; systemctl kill -s KILL kubelet; }; sleep 0.2; done';
      const crashed = 'until systemctl show kubelet -p SubState | grep -q auto-restart; do sleep 0.1; done';
      lab.run('node2', `systemd-run --unit=killer bash -c '${loop}'; ${crashed}`);
      const change = ['--set', 'maxPods=81', '--ignore-preflight-errors', 'Port-10250'];
      const { code, stderr } = await upgrade2(...change).finally(() => lab.run('node2', 'systemctl stop killer'));
      expect([code, stderr]).toEqual([expect.any(Number), expect.stringMatching(/killed by SIGKILL.*\[KUBELET_UNHEALTHY\]/)]);
      expect(code).toBeGreaterThan(0);
      lab.run('node2', 'until curl -sf http://127.0.0.1:10248/healthz; do sleep 0.5; done; systemctl reset-failed kubelet || true');
    });

    it('is no success for a run that changes nothing: a corrupt state file', async () => {
      const policy = ['--set', 'cpuManagerPolicy=static', '--set', 'kubeReserved={"cpu":"500m"}', '--allow', 'unsafe'];
      const done = await upgrade2(...policy);
      expect(done.code, done.stderr).toBe(0);
      const state = '/var/lib/kubelet/cpu_manager_state';
      lab.run(
        'node2',
        `systemctl stop kubelet; sed -i 's/"checksum":/"checksum":1/' ${state}; systemctl start kubelet; until [ $(systemctl show kubelet -p NRestarts --value) -gt 0 ]; do sleep 0.1; done`,
      );
      const refused = await upgrade2();
      expect([refused.code, refused.stderr]).toEqual([3, expect.stringMatching(/cpu_manager_state is corrupt.*\[KubeletState\]/)]);
      const { code, stderr } = await upgrade2('--ignore-preflight-errors', 'KubeletState');
      expect(code, stderr).not.toBe(0);
      expect(stderr).toMatch(/cpu_manager_state of the CPU manager does not fit: checkpoint is corrupted/);
    });
  });

  describe('a running pod that the restarted kubelet rejects', () => {
    const statusOf = async (kind: string, name: string) =>
      ((await cluster.get({ apiVersion: 'v1', kind, name, ...(kind === 'Pod' ? { namespace: 'default' } : {}) }))?.status ??
        {}) as JsonObject;
    const runPod = async (name: string, container: JsonObject): Promise<void> => {
      await cluster.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default' },
        spec: {
          nodeName: 'node1',
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 0,
          tolerations: [{ operator: 'Exists' }],
          restartPolicy: 'Never',
          containers: [{ name: 'c', image: PAUSE, ...container }],
        },
      });
      await expect.poll(async () => (await statusOf('Pod', name)).phase, { timeout: 60_000 }).toBe('Running');
    };
    /** The change is refused, and ends the pod for this reason if it is forced. */
    const rejects = async (name: string, change: readonly string[], reason: string): Promise<void> => {
      const { code, stderr } = await upgrade('node1', ...change, '--allow', 'unsafe', '--no-drain');
      expect([code, stderr]).toEqual([
        3,
        expect.stringMatching(new RegExp(`\\(${reason}\\): default/${name} would be terminated.*\\[PODS_AT_RISK\\]`)),
      ]);
      expect((await statusOf('Pod', name)).phase).toBe('Running');
      const lost = await upgrade('node1', ...change, '--allow', 'unsafe', '--allow-pod-loss', '--no-drain');
      expect(lost.code, lost.stderr).toBe(0);
      await expect.poll(() => statusOf('Pod', name), { timeout: 60_000 }).toMatchObject({ phase: 'Failed', reason });
    };

    beforeAll(() => {
      const names = ['3.6', '3.8', '3.10.2'].map((tag) => `registry.k8s.io/pause:${tag}`);
      lab.importImage('node1', imageArchive({ names, programs: ['/bin/sleep'], entrypoint: ['sleep', '2147483647'] }));
    });

    it('is named for a gate off: a restart rule for all containers', async () => {
      const rule = { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [88] } };
      await runPod('trainer', { restartPolicy: 'Never', restartPolicyRules: [rule] });
      expect((await statusOf('Node', 'node1')).declaredFeatures).toContain(RESTART_GATE);
      await rejects('trainer', ['--set', `featureGates={"${RESTART_GATE}":false}`], 'PodFeatureUnsupported');
      expect((await statusOf('Node', 'node1')).declaredFeatures ?? []).not.toContain(RESTART_GATE);
    });

    it('is named for full cores: a pod with all free CPUs', async () => {
      const policy = ['--set', 'cpuManagerPolicy=static', '--set', 'kubeReserved={"cpu":"500m"}'];
      const done = await upgrade('node1', ...policy, '--allow', 'unsafe', '--allow-pod-loss', '--no-drain');
      expect(done.code, done.stderr).toBe(0);
      const resources = { cpu: String(Number(lab.run('node1', 'nproc')) - 1), memory: '64Mi' };
      await runPod('pinned', { resources: { requests: resources, limits: resources } });
      await rejects('pinned', [...policy, '--set', 'cpuManagerPolicyOptions={"full-pcpus-only":"true"}'], 'SMTAlignmentError');
    });
  });
});
