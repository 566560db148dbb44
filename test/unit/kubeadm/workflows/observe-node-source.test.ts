import { describe, expect, it } from 'vitest';
import { renderMetaFile } from '../../../../src/dynamic/native/native-store.ts';
import { observeNodeSource } from '../../../../src/kubeadm/workflows/node/observe-node-source.ts';
import { formatManifest, formatPointer } from '../../../../src/kubelet/node-agent/layout.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';

const A = { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet', uid: 'u1', resourceVersion: '7' };
const B = { ...A, name: 'b', uid: 'u2' };
const AGENT = '/var/lib/kubelet/kubeletadm-agent';
const HASH = 'a'.repeat(64);
const CHECKPOINT = `${AGENT}/checkpoints/${HASH}`;
const STORE = '/var/lib/kubelet/dynamic-config/store';
const POINTER = {
  [`${AGENT}/active.env`]: formatPointer(AGENT, HASH),
  '/etc/systemd/system/kubelet.service.d/20-kubeletadm-agent.conf': '[Service]\n',
};
const PAYLOAD = {
  [`${CHECKPOINT}/kubelet.yaml`]: 'maxPods: 33\n',
  [`${CHECKPOINT}/manifest.json`]: formatManifest({ identity: A, files: ['kubelet.yaml'], sets: ['maxPods'] }),
};
const NATIVE = {
  [`${STORE}/meta/assigned`]: renderMetaFile(A),
  [`${STORE}/meta/last-known-good`]: renderMetaFile(B),
  [`${STORE}/checkpoints/u1/7/kubelet`]: 'maxPods: 33\n',
  [`${STORE}/checkpoints/u2/7/kubelet`]: 'maxPods: 44\n',
};
const DYNAMIC = ['--config=/var/lib/kubelet/config.yaml', '--dynamic-config-dir=/var/lib/kubelet/dynamic-config'];

interface World {
  readonly files?: Readonly<Record<string, string>>;
  /** Null: no process can be observed. */
  readonly flags: readonly string[] | null;
  readonly version?: string;
  readonly active?: boolean;
}

function host({ files = {}, flags, version = 'v1.36.2', active = flags !== null }: World): FakeHost {
  return fakeHost({
    name: 'n',
    files,
    units: { kubelet: fakeUnit({ activeState: active ? 'active' : 'inactive' }) },
    commands: {
      sh: ([, , script = '']) => {
        if (script === 'command -v kubelet') return { stdout: '/usr/bin/kubelet\n' };
        if (!script.includes('/cmdline') || flags === null) return { exitCode: 3 };
        return { stdout: `712 1 2\n${['/usr/bin/kubelet', ...flags].join('\0')}\0` };
      },
      kubelet: { stdout: `Kubernetes ${version}\n` },
    },
  });
}

const identity = ({ namespace, name, kubeletConfigKey }: typeof A) => ({ namespace, name, kubeletConfigKey });

describe('observeNodeSource', () => {
  it.each<[string, World, object, string | null]>([
    ['the file', { flags: ['--config=/var/lib/kubelet/config.yaml'] }, { kind: 'file', dropIns: 0 }, null],
    [
      'the file with drop-ins, only those that end with .conf',
      {
        flags: ['--config=/var/lib/kubelet/config.yaml', '--config-dir', '/etc/kubelet.d'],
        files: { '/etc/kubelet.d/10-a.conf': 'a', '/etc/kubelet.d/20-b.conf': 'b', '/etc/kubelet.d/README': 'c' },
      },
      { kind: 'file', dropIns: 2 },
      null,
    ],
    [
      'the ConfigMap of the agent',
      { flags: [`--config=${CHECKPOINT}/kubelet.yaml`], files: PAYLOAD },
      { kind: 'config-map', source: identity(A), dropIns: 0 },
      'maxPods: 33\n',
    ],
    [
      'the file of the process, although the agent has selected a ConfigMap for the next start',
      { flags: ['--config=/var/lib/kubelet/config.yaml'], files: { ...PAYLOAD, ...POINTER } },
      { kind: 'file', dropIns: 0 },
      null,
    ],
    [
      'the ConfigMap of the next start, while no kubelet runs',
      { flags: null, files: { ...PAYLOAD, ...POINTER } },
      { kind: 'config-map', source: identity(A), dropIns: 0 },
      'maxPods: 33\n',
    ],
    ['nothing, while no kubelet runs', { flags: null, files: PAYLOAD }, { kind: 'none' }, null],
    [
      'unknown: a process that cannot be observed',
      { flags: null, active: true, files: { ...PAYLOAD, ...POINTER } },
      { kind: 'unknown', why: 'the command line of the kubelet cannot be read' },
      null,
    ],
    [
      'unknown: a checkpoint without manifest',
      { flags: [`--config=${CHECKPOINT}/kubelet.yaml`], files: { [`${CHECKPOINT}/kubelet.yaml`]: 'maxPods: 33\n' } },
      { kind: 'unknown', why: `${CHECKPOINT}/manifest.json, which names the ConfigMap of the kubelet, cannot be read` },
      'maxPods: 33\n',
    ],
    [
      'the native assignment',
      { flags: DYNAMIC, files: NATIVE, version: 'v1.21.0' },
      { kind: 'native', candidates: [A, B], dropIns: 0 },
      'maxPods: 33\n',
    ],
    [
      'the native assignment with its gate',
      { flags: [...DYNAMIC, '--feature-gates=DynamicKubeletConfig=true'], files: NATIVE, version: 'v1.23.0' },
      { kind: 'native', candidates: [A, B], dropIns: 0 },
      'maxPods: 33\n',
    ],
    ['the file: the gate is closed', { flags: DYNAMIC, files: NATIVE, version: 'v1.23.0' }, { kind: 'file', dropIns: 0 }, null],
    [
      'the file: nothing is assigned',
      { flags: DYNAMIC, files: { ...NATIVE, [`${STORE}/meta/assigned`]: '' }, version: 'v1.21.0' },
      { kind: 'file', dropIns: 0 },
      null,
    ],
  ])('finds %s', async (_, world, source, text) => {
    const observed = await observeNodeSource(host(world));
    expect(observed.host).toEqual(source);
    expect((await observed.payload(null))?.text ?? null).toBe(text);
  });

  it('reads the last known good configuration if the Node reports it as active', async () => {
    const observed = await observeNodeSource(host({ flags: DYNAMIC, files: NATIVE, version: 'v1.21.0' }));
    const { namespace, name, kubeletConfigKey, uid, resourceVersion } = B;
    const active = { configMap: { namespace, name, kubeletConfigKey, uid, resourceVersion } };
    const node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n' },
      status: { nodeInfo: { kubeletVersion: 'v1.21.0' }, config: { active } },
    };
    expect(await observed.payload(node)).toMatchObject({ text: 'maxPods: 44\n', by: 'kubelet', sets: null });
  });

  it('takes one round trip for a node with its own file', async () => {
    const node = host({ flags: ['--config=/var/lib/kubelet/config.yaml'] });
    await observeNodeSource(node);
    expect(node.roundTrips).toBe(1);
  });
});
