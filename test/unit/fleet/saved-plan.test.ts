import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret, SensitiveText } from '../../../src/base/text/secret.ts';
import { canonicalJson } from '../../../src/codec/json-text.ts';
import { parseSource, type SourceDocument } from '../../../src/codec/source.ts';
import type { PlannedHost } from '../../../src/fleet/file/model.ts';
import { differingOperations, operationsOf } from '../../../src/fleet/plan/operations.ts';
import { hostsToApply, isExpired, type PlanContext, readPlan, savePlan } from '../../../src/fleet/plan/saved-plan.ts';
import type { Change } from '../../../src/host/plan/change.ts';
import type { HostPlan } from '../../../src/host/plan/document.ts';
import { fixture } from '../../support/fixture.ts';
import { resolved } from './support.ts';

const CONTEXT: PlanContext = {
  fleet: { file: 'fleet.yaml', directory: '/srv', name: null },
  cluster: {
    kubeconfig: 'admin.conf',
    context: null,
    configuration: null,
    endpoint: null,
    caFile: null,
    caCertHashes: [],
    token: { env: 'TOKEN' },
  },
  server: 'https://10.0.0.1:6443',
  takeOver: false,
  ignorePreflightErrors: [],
};
const LIFETIME = { createdAt: new Date('2026-03-01T12:00:00Z'), validForMs: 3_600_000 };
/** Contains every setting of a host. */
const ALL_SETTINGS = `name: lab
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf, context: lab, configuration: kubeadm.yaml, endpoint: 'api.example:6443', caCert: ca.crt, token: {env: TOKEN}}
baseline:
  ssh: {user: core, bastion: b, connectTimeout: 10s, commandTimeout: 2m, identityFiles: [id]}
  labels: {pool: edge}
  kernelModules: [br_netfilter]
  sysctls: {net.ipv4.ip_forward: 1}
  swap: off
  install: packages
  packages: {extra: [conntrack]}
  proxy: {https: "http://p.example:3128", noProxy: [.example], credentials: {file: proxy.txt}}
  kubeletConfigDir: true
  kubeletConfiguration: {maxPods: 100}
  hooks: {beforeChange: {command: [drain, "{{ name }}"], env: {TOKEN: {env: HOOK}}}, afterChange: {command: uncordon, timeout: 1m}}
hosts:
  - {name: b, role: bastion, ssh: {port: 2222}}
  - name: e1
    address: fd00::1
    nodeName: node-1
    nodeIP: 10.0.0.1
    criSocket: unix:///run/crio.sock
    resolvConf: /run/resolv.conf
    cgroupDriver: systemd
    taints: [{key: a, value: b, effect: NoSchedule}]
    kubeletExtraArgs: [{name: v, value: "4"}]
    droppedKubeletArgs: [node-ip]
    ignorePreflightErrors: [Swap]
    kubeletConfiguration: {maxPods: 60}
  - name: e2
    install: binaries
    proxy: {https: none}
    binaries: {source: bin, files: [{name: kubelet, sha256: ${'a'.repeat(64)}}], units: [kubelet]}
`;
const OVERLAY = parseSource('kind: KubeletConfiguration\nmaxPods: 60\nfeatureGates: {A: true}\n', '/srv/fleet.yaml')
  .documents[0] as SourceDocument;

function host(name: string): PlannedHost {
  const ssh = { address: name, identityFiles: [], jumps: [], direct: false, become: 'auto', transport: 'builtin', hostKeys: [] } as const;
  const nodeRegistration = { kubeletExtraArgs: [{ name: 'v', value: '4' }], droppedFlags: ['node-ip'] };
  return {
    name,
    role: 'worker',
    groups: ['edge'],
    ssh,
    nodeRegistration,
    declared: [],
    overlays: [{ document: OVERLAY }],
  };
}

type WriteFile = Extract<Change, { kind: 'write-file' }>;
const WRITE: WriteFile = {
  kind: 'write-file',
  path: '/x',
  mode: 0o644,
  owner: 'root:root',
  action: 'update',
  content: 'new\n',
  before: { content: 'old\n', mode: 0o644, owner: 'root:root' },
  reason: 'its content differs',
};
const RESTART: Change = { kind: 'restart-unit', unit: 'kubelet', reason: '/x changed' };

function planOf(name: string, ...changes: Change[]): HostPlan {
  return { name, own: { node: name }, phases: [{ phase: 'kubelet-start', plan: { changes } }] };
}

const differ = (a: readonly Change[], b: readonly Change[]) =>
  differingOperations(operationsOf(planOf('a', ...a)), operationsOf(planOf('a', ...b)));

describe('the difference between two plans of a host', () => {
  const write = (more: Partial<WriteFile>): Change => ({ ...WRITE, ...more });
  const token = (text: string) => new SensitiveText(['token: ', new Secret(text), '\n']);
  const X = 'kubelet-start write-file /x';
  const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'x' } };
  const CREATE: Change = { kind: 'create-object', object, reason: 'does not exist' };
  const UPDATE: Change = { kind: 'update-object', object, before: object, reason: 'its labels differ' };

  it.each<[string, readonly Change[], readonly Change[], readonly string[]]>([
    ['equal plans', [WRITE, RESTART], [WRITE, RESTART], []],
    ['other reasons', [WRITE], [write({ reason: 'something else' })], []],
    ['another secret', [write({ content: token('a') })], [write({ content: token('b') })], []],
    ['other content', [WRITE], [write({ content: 'newer\n' })], [X]],
    ['another mode', [WRITE], [write({ mode: 0o600 })], [X]],
    ['another previous content', [WRITE], [write({ before: { content: 'by hand\n', mode: 0o644, owner: 'root:root' } })], [X]],
    ['another previous owner', [WRITE], [write({ before: { content: 'old\n', mode: 0o644, owner: 'bob:bob' } })], [X]],
    ['a missing operation', [WRITE, RESTART], [WRITE], ['kubelet-start restart-unit kubelet']],
    ['an additional operation', [RESTART], [WRITE, RESTART], [X]],
    ['another order', [WRITE, RESTART], [RESTART, WRITE], ['order of the operations']],
    ['an object that exists by now', [CREATE, RESTART], [RESTART], []],
    [
      'an object that exists by now with other content',
      [CREATE],
      [UPDATE],
      ['kubelet-start create-object Namespace x', 'kubelet-start update-object Namespace x'],
    ],
    ['an additional object', [RESTART], [CREATE, RESTART], ['kubelet-start create-object Namespace x']],
  ])('%s', (_, a, b, expected) => {
    expect(differ(a, b)).toEqual(expected);
  });
});

describe('a saved plan', () => {
  const plan = (...names: string[]) =>
    savePlan(
      CONTEXT,
      names.map((name) => [host(name), { status: 'pending', plan: planOf(name, WRITE, RESTART), problems: [] }] as const),
      LIFETIME,
    );

  it('returns its hosts with their operations', () => {
    const text = JSON.stringify(plan('a1', 'a2'));
    const tasks = hostsToApply(readPlan(text, 'plan.json'));
    expect(tasks.map((task) => withoutOverlays(task.host))).toMatchObject(['a1', 'a2'].map((name) => withoutOverlays(host(name))));
    expect(tasks[0]?.operations).toEqual(operationsOf(planOf('a1', WRITE, RESTART)));
    expect(tasks[0]?.host.overlays[0]?.document).toBe(tasks[1]?.host.overlays[0]?.document);
    expect(tasks[0]?.host.overlays[0]?.document.file).toBe('/srv/fleet.yaml');
  });

  it('returns the layers of drop-in files with their names', () => {
    const document = { ...OVERLAY, layer: 'group edge' };
    const planned: PlannedHost = { ...host('a1'), kubeletConfigDir: true, overlays: [{ document }] };
    const outcome = { status: 'pending', plan: planOf('a1', WRITE, RESTART), problems: [] } as const;
    const [task] = hostsToApply(readPlan(JSON.stringify(savePlan(CONTEXT, [[planned, outcome]], LIFETIME)), 'plan.json'));
    expect(task?.host).toMatchObject({ kubeletConfigDir: true, overlays: [{ document: { layer: 'group edge' } }] });
  });

  it('returns the host keys of a host and of its bastion', () => {
    const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';
    const { hosts } = resolved(
      `baseline: {ssh: {hostKeys: ["${key}"]}}\nhosts: [{name: b, role: bastion}, {name: n1, ssh: {bastion: b}}]\n`,
    );
    const saved = savePlan(
      CONTEXT,
      hosts.map((each) => [each, { status: 'pending', plan: planOf('n1', WRITE), problems: [] }] as const),
      LIFETIME,
    );
    const [task] = hostsToApply(readPlan(JSON.stringify(saved), 'plan.json'));
    expect(task?.host.ssh).toEqual(hosts[0]?.ssh);
    expect(task?.host.ssh.jumps[0]?.hostKeys).toMatchObject([{ file: 'fleet.yaml', line: 3, hosts: 'b' }]);
  });

  it('of version 0.1.0 is read, and the same fleet file gives the same plan', () => {
    const text = fixture(import.meta.url, 'fixtures/plan-0.1.0.json');
    const fleet = resolved(ALL_SETTINGS);
    const context: PlanContext = {
      ...CONTEXT,
      fleet: { file: 'fleet.yaml', directory: '/srv', name: 'lab' },
      cluster: fleet.cluster,
      allowPodLoss: true,
      allow: 'drain',
      ignorePreflightErrors: ['Swap'],
      canary: ['e1'],
    };
    const change: Change = { kind: 'restart-unit', unit: 'kubelet', reason: '/x changed' };
    const outcomes = fleet.hosts.map(
      (each, i) => [each, { status: 'pending', plan: planOf(each.name, change), problems: i === 0 ? ['e1: a warning'] : [] }] as const,
    );
    const saved = savePlan(context, outcomes, LIFETIME);
    expect(saved).toEqual(JSON.parse(text));
    expect(readPlan(text, 'plan.json')).toEqual(saved);
  });

  it('is read as printed, without the forecast of the drains', () => {
    const saved = plan('a1');
    const printed = { ...saved, drainForecast: { kind: 'DrainForecast', nodes: [] } };
    expect(readPlan(JSON.stringify(printed), 'plan.json')).toEqual(saved);
  });

  it('has one id for the same content, and stores shared content once', () => {
    expect(plan('a1', 'a2').id).toBe(plan('a1', 'a2').id);
    expect(plan('a1').id).not.toBe(plan('a2').id);
    expect(Object.keys(plan('a1', 'a2', 'a3').changes)).toHaveLength(1);
    expect(Object.keys(plan('a1', 'a2', 'a3').overlays)).toHaveLength(1);
  });

  it('has no operations on unchanged or unreachable hosts', () => {
    const outcomes = [
      [host('a1'), { status: 'unchanged', plan: planOf('a1'), problems: [] }],
      [host('a2'), { status: 'unreachable', plan: null, problems: ['a2: no response'] }],
    ] as const;
    const saved = savePlan(CONTEXT, outcomes, LIFETIME);
    expect(hostsToApply(saved)).toEqual([]);
    expect(saved.hosts[1]?.problems).toEqual(['a2: no response']);
  });

  it('keeps the permission to end pods, and may be without it', () => {
    const allowed = savePlan({ ...CONTEXT, allowPodLoss: true }, [], LIFETIME);
    expect(readPlan(JSON.stringify(allowed), 'plan.json').allowPodLoss).toBe(true);
    expect(readPlan(JSON.stringify(plan('a1')), 'plan.json').allowPodLoss).toBeUndefined();
  });

  it.each([
    ['not JSON', () => 'kind: FleetPlan', /not valid JSON/],
    ['another value', () => '[]', /not a valid saved plan/],
    ['edited', () => JSON.stringify({ ...plan('a1'), takeOver: true }), /the file was edited after saving/],
    [
      'made valid for longer',
      () => JSON.stringify({ ...plan('a1'), validity: { ...plan('a1').validity, expiresAt: '2027-01-01T00:00:00Z' } }),
      /the file was edited after saving/,
    ],
    ['without a time', () => JSON.stringify({ ...plan('a1'), validity: undefined }), /validity/],
    ['with an unknown field', () => JSON.stringify({ ...plan('a1'), more: 1 }), /more/],
    ['of a later version', () => JSON.stringify({ ...plan('a1'), apiVersion: 'kubeletadm.dev/v2' }), /apiVersion/],
  ])('is refused: %s', (_, text, message) => {
    expect(() => readPlan(text(), 'plan.json')).toThrow(message);
  });

  it('has the same id at another time, and expires', () => {
    const later = savePlan(CONTEXT, [], { ...LIFETIME, createdAt: new Date('2026-03-02T12:00:00Z') });
    const saved = savePlan(CONTEXT, [], LIFETIME);
    expect(later.id).toBe(saved.id);
    expect(saved.validity).toMatchObject({ createdAt: '2026-03-01T12:00:00.000Z', expiresAt: '2026-03-01T13:00:00.000Z' });
    expect(isExpired(saved, new Date('2026-03-01T12:59:59.999Z'))).toBe(false);
    expect(isExpired(saved, new Date('2026-03-01T13:00:00Z'))).toBe(true);
  });

  it('has one canonical encoding', () => {
    expect(canonicalJson({ b: [1, { d: undefined, c: null }], a: 'ü' })).toBe('{"a":"ü","b":[1,{"c":null}]}');
    expect(canonicalJson({ secret: new Secret('s3cret'), list: [undefined, true] })).toBe('{"list":[null,true],"secret":"[secret]"}');
  });

  it('decodes to the encoded value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

function withoutOverlays({ overlays: _, ...rest }: PlannedHost) {
  return rest;
}
