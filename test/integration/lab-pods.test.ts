import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { labNetwork } from '../../lab/hosts/lab-network.ts';
import { StandInKubelet } from '../../lab/hosts/stand-in-kubelet.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { PROBE_NAME, probePod, readProbe } from '../../src/kubelet/health/probe-pod.ts';
import { readPod } from '../../src/kubelet/workload/pod.ts';

const NODE = 'node1';
const PROBE = JSON.stringify(probePod(PROBE_NAME, 'registry.k8s.io/pause:3.10'));
const CONFIG = { staticPodPath: '/etc/kubernetes/manifests', resolvConf: '/etc/resolv.conf', clusterDNS: ['10.96.0.10'], maxPods: 110 };
const poll = { timeout: 20_000, interval: 20 };

describe('the pods of a lab host', () => {
  let root: string;
  let api: LabApiServer;
  let kubelet: StandInKubelet;
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    // Renamed into place, as kubeletadm writes files.
    writeFileSync(join(root, `${path}.new`), text);
    renameSync(join(root, `${path}.new`), join(root, path));
  };
  const add = (name: string): void => {
    const containers = [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }];
    api.put({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec: { nodeName: NODE, containers } });
  };
  const podOf = (name: string): KubeObject | null => api.get('v1', 'Pod', name, 'default');
  const stateOf = (name: string): string => {
    const pod = podOf(name);
    if (pod === null) return 'absent';
    const { phase, reason } = readPod(pod);
    return [phase, reason].filter(Boolean).join(' ');
  };
  const probe = () => readProbe(api.get('v1', 'Pod', `${PROBE_NAME}-${NODE}`, 'kube-system'));
  const nodeStatus = (): JsonObject => (api.get('v1', 'Node', NODE)?.status ?? {}) as JsonObject;

  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'kubeletadm-lab-pods-'));
    api = await startApiServer();
    put('/etc/kubernetes/kubelet.conf', await api.kubeconfigFor(`system:node:${NODE}`, ['system:nodes']));
    put('/etc/resolv.conf', '');
    kubelet = new StandInKubelet({
      rootDir: root,
      network: labNetwork(6443),
      hostname: NODE,
      address: '192.168.99.11',
      version: 'v1.36.2',
      log: () => undefined,
    });
  });
  afterEach(async () => {
    kubelet.stop();
    await api.close();
    rmSync(root, { recursive: true, force: true });
  });

  it('run with the credential of the node, and are rejected after a restart with maxPods 1', async () => {
    kubelet.start(CONFIG);
    for (const name of ['a', 'b']) add(name);
    await expect.poll(() => [stateOf('a'), stateOf('b')], poll).toEqual(['Running', 'Running']);
    expect(nodeStatus()).toMatchObject({
      capacity: { cpu: '4', memory: '8388608Ki', pods: '110' },
      allocatable: { cpu: '4', pods: '110' },
    });
    kubelet.start({ ...CONFIG, maxPods: 1, kubeReserved: { cpu: '500m' } });
    await expect.poll(() => [stateOf('a'), stateOf('b')], poll).toEqual(['Running', 'Failed OutOfpods']);
    expect(nodeStatus()).toMatchObject({ allocatable: { cpu: '3500m', pods: '1' } });
  });

  it('follow the files in staticPodPath, which may be created later', async () => {
    kubelet.start(CONFIG);
    await expect.poll(() => api.openWatches, poll).toBe(1);
    put('/etc/kubernetes/manifests/kubeletadm-probe.yaml', PROBE);
    await expect.poll(probe, poll).toEqual({ state: 'started' });
    rmSync(join(root, 'etc/kubernetes/manifests/kubeletadm-probe.yaml'));
    await expect.poll(() => api.get('v1', 'Pod', `${PROBE_NAME}-${NODE}`, 'kube-system'), poll).toBeNull();
    put('/etc/kubernetes/manifests/kubeletadm-probe.yaml', PROBE);
    await expect.poll(probe, poll).toEqual({ state: 'started' });
    rmSync(join(root, 'etc/kubernetes/manifests'), { recursive: true });
    await expect.poll(() => api.get('v1', 'Pod', `${PROBE_NAME}-${NODE}`, 'kube-system'), poll).toBeNull();
  });

  it('start without a restart of the kubelet when a missing resolvConf appears', async () => {
    kubelet.start({ ...CONFIG, resolvConf: '/run/missing.conf' });
    add('a');
    await expect.poll(() => stateOf('a'), poll).toBe('Pending');
    put('/run/missing.conf', '');
    await expect.poll(() => stateOf('a'), poll).toBe('Running');
  });

  it('are evicted under disk pressure, which the Node reports', async () => {
    kubelet.start(CONFIG);
    add('a');
    await expect.poll(() => stateOf('a'), poll).toBe('Running');
    kubelet.start({ ...CONFIG, evictionHard: { 'nodefs.available': '99%' } });
    await expect.poll(() => stateOf('a'), poll).toBe('Failed Evicted');
    const conditions = nodeStatus().conditions as readonly JsonObject[];
    expect(conditions.find(({ type }) => type === 'DiskPressure')).toMatchObject({ status: 'True' });
  });

  it('need one watch, and one report for each pod', async () => {
    kubelet.start(CONFIG);
    for (const name of ['a', 'b']) {
      add(name);
      await expect.poll(() => stateOf(name), poll).toBe('Running');
    }
    const asked = api.requests.filter(({ path }) => path.includes('/pods')).map(({ method, path }) => `${method} ${path}`);
    expect(asked.filter((line) => line.includes('watch=true'))).toHaveLength(1);
    expect(asked.filter((line) => line.startsWith('PATCH'))).toEqual([
      'PATCH /api/v1/namespaces/default/pods/a/status',
      'PATCH /api/v1/namespaces/default/pods/b/status',
    ]);
  });
});
