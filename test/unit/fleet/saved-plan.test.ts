import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret, SensitiveText } from '../../../src/base/text/secret.ts';
import { canonicalJson } from '../../../src/codec/json-text.ts';
import { parseSource, type SourceDocument } from '../../../src/codec/source.ts';
import { differingOperations, operationsOf } from '../../../src/fleet/operations.ts';
import { hostsToApply, isExpired, type PlanContext, type PlannedHost, readPlan, savePlan } from '../../../src/fleet/saved-plan.ts';
import { NO_HOOKS } from '../../../src/host/hooks.ts';
import { NO_PREPARATION } from '../../../src/host/install/model.ts';
import type { Change } from '../../../src/host/plan/change.ts';
import type { HostPlan } from '../../../src/host/plan/document.ts';

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
    preparation: NO_PREPARATION,
    hooks: NO_HOOKS,
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
