import { describe, expect, it } from 'vitest';
import { Secret, SensitiveText } from '../../../../src/base/text/secret.ts';
import type { HostChange, PhasePlan } from '../../../../src/host/plan/change.ts';
import { fileDiff, maskObject, planDocument, planIsEmpty } from '../../../../src/host/plan/document.ts';

type WriteFile = Extract<HostChange, { kind: 'write-file' }>;
const reason = 'a test';
const CONFIG: WriteFile = {
  kind: 'write-file',
  path: '/var/lib/kubelet/config.yaml',
  mode: 0o644,
  owner: 'root:root',
  action: 'update',
  content: 'maxPods: 5\n',
  before: { content: 'maxPods: 4\n', mode: 0o644, owner: 'root:root' },
  reason,
};
const KUBECONFIG: WriteFile = {
  ...CONFIG,
  path: '/etc/kubernetes/bootstrap-kubelet.conf',
  content: new SensitiveText(['token: ', new Secret('hush'), '\n']),
  before: { content: 'token: older-secret\n', mode: 0o600, owner: 'root:root' },
};
const CONFIG_MAP = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'kubelet-config', namespace: 'kube-system' },
  data: { kubelet: 'a' },
};

function one(plan: PhasePlan, origins?: Record<string, Record<string, string>>) {
  return planDocument([{ name: 'node1', phases: [{ phase: 'p', plan }], ...(origins ? { origins } : {}) }], []);
}

describe('planDocument', () => {
  it('has a stable structure, and empty lists without changes', () => {
    expect(one({ changes: [], noop: 'all is well' })).toEqual({
      apiVersion: 'kubeletadm.dev/v1alpha1',
      kind: 'Plan',
      hosts: [{ name: 'node1', changes: [], noops: [{ phase: 'p', reason: 'all is well' }], highestImpact: null }],
      highestImpact: null,
      cluster: { changes: [] },
      deferred: [],
      warnings: [],
    });
  });

  it('shows no credentials for the URL of static pods, in files and in ConfigMaps', () => {
    const text = (value: string): string =>
      `maxPods: 5\nstaticPodURL: https://u:${value}@pods.example\nstaticPodURLHeader:\n  Authorization:\n  - ${value}\n`;
    const file: WriteFile = {
      ...CONFIG,
      content: text('hush-new'),
      before: { content: text('hush-old'), mode: 0o600, owner: 'root:root' },
    };
    const object = { ...CONFIG_MAP, data: { kubelet: text('hush-object') } };
    const shown = JSON.stringify([one({ changes: [file, { kind: 'create-object', object, reason }] }), fileDiff(file)]);
    expect(shown).not.toContain('hush');
    expect(shown).toContain('staticPodURLHeader: [secret]');
  });

  it('shows a file with mode, diff and origin', () => {
    const { hosts } = one({ changes: [CONFIG] }, { [CONFIG.path]: { maxPods: 'set: --set' } });
    expect(hosts[0]?.changes).toEqual([
      {
        kind: 'write-file',
        phase: 'p',
        path: CONFIG.path,
        mode: '0644',
        owner: 'root:root',
        action: 'update',
        content: 'maxPods: 5\n',
        diff: `--- ${CONFIG.path}\n+++ ${CONFIG.path}\n@@ -1 +1 @@\n-maxPods: 4\n+maxPods: 5\n`,
        reason,
        origin: { maxPods: 'set: --set' },
      },
    ]);
  });

  it('shows the impact of each change and its fields, and the highest impact of host and plan', () => {
    const fields = [
      { field: 'maxPods', before: 4, after: 5, impact: 'safe' },
      { field: 'cpuManagerPolicy', before: 'none', after: 'static', impact: 'drain' },
    ] as const;
    const drain: PhasePlan = {
      changes: [
        { ...CONFIG, impact: 'drain', fields },
        { kind: 'restart-unit', unit: 'kubelet', impact: 'safe', reason },
      ],
    };
    const plan = planDocument(
      [
        { name: 'node1', phases: [{ phase: 'p', plan: drain }] },
        { name: 'node2', phases: [{ phase: 'p', plan: { changes: [CONFIG] } }] },
      ],
      [],
    );
    expect(plan.highestImpact).toBe('drain');
    expect(plan.hosts.map(({ highestImpact }) => highestImpact)).toEqual(['drain', null]);
    expect(plan.hosts[0]?.changes).toMatchObject([{ impact: 'drain', fields }, { impact: 'safe' }]);
    expect(plan.hosts[1]?.changes[0]).not.toHaveProperty('impact');
  });

  it.each<[HostChange, object]>([
    [
      { kind: 'make-directory', path: '/d', mode: 0o700, owner: 'root:root', reason },
      { path: '/d', mode: '0700', owner: 'root:root' },
    ],
    [
      { kind: 'remove-file', path: '/f', before: { content: 'token: older-secret\n', mode: 0o600, owner: 'root:root' }, reason },
      { path: '/f' },
    ],
    [
      { kind: 'move-file', path: '/f', to: '/g', reason },
      { path: '/f', to: '/g' },
    ],
    [{ kind: 'restart-unit', unit: 'kubelet', reason }, { unit: 'kubelet' }],
    [{ kind: 'daemon-reload', reason }, {}],
    [
      { kind: 'unmount-below', path: '/m', flags: ['-f'], reason },
      { path: '/m', flags: ['-f'] },
    ],
    [{ kind: 'remove-pods', criSocket: 'unix:///x', reason }, { criSocket: 'unix:///x' }],
  ])('shows %j', (change, members) => {
    expect(one({ changes: [change] }).hosts[0]?.changes).toEqual([{ kind: change.kind, phase: 'p', reason, ...members }]);
  });

  it('masks secrets on both sides of a diff', () => {
    const text = JSON.stringify(one({ changes: [KUBECONFIG, { kind: 'remove-file', path: '/k', before: KUBECONFIG.before, reason }] }));
    expect(text).toContain('[secret]');
    expect(text).not.toMatch(/hush|older-secret/);
  });

  it('shows cluster changes separately, and once when several hosts plan them', () => {
    const plan: PhasePlan = {
      changes: [
        { kind: 'create-object', object: CONFIG_MAP, reason },
        { kind: 'update-object', object: CONFIG_MAP, before: CONFIG_MAP, reason },
        { kind: 'patch-object', ref: { apiVersion: 'v1', kind: 'Node', name: 'n1' }, patch: { metadata: { labels: { a: 'b' } } }, reason },
      ],
    };
    const document = planDocument(
      ['a', 'b'].map((name) => ({ name, phases: [{ phase: 'p', plan }] })),
      [],
    );
    expect(document.cluster.changes.map(({ action }) => action)).toEqual(['create', 'update', 'patch']);
    expect(document.hosts.map(({ changes }) => changes)).toEqual([[], []]);
    expect(planIsEmpty(document)).toBe(false);
  });

  it('shows deferred phases, and each warning once', () => {
    const warning = { code: 'W', message: 'mind', field: 'maxPods' };
    const plan: PhasePlan = { changes: [], deferred: 'needs the API server', warnings: [warning] };
    const document = planDocument([{ name: 'a', phases: [{ phase: 'p', plan }] }], [warning, { code: 'V', message: 'other' }]);
    expect(document.deferred).toEqual([{ phase: 'p', reason: 'needs the API server' }]);
    expect(document.warnings).toEqual([warning, { code: 'V', message: 'other' }]);
  });
});

describe('planIsEmpty', () => {
  it.each<[string, PhasePlan, boolean]>([
    ['nothing', { changes: [], noop: 'n' }, true],
    ['only deferred', { changes: [], deferred: 'd' }, true],
    ['a change of the host', { changes: [CONFIG] }, false],
    ['a change of the cluster', { changes: [{ kind: 'create-object', object: CONFIG_MAP, reason }] }, false],
  ])('%s', (_, plan, expected) => {
    expect(planIsEmpty(one(plan))).toBe(expected);
  });
});

describe('fileDiff', () => {
  it('of a new file starts with /dev/null', () => {
    expect(fileDiff({ ...CONFIG, action: 'create', before: null })).toBe(`--- /dev/null\n+++ ${CONFIG.path}\n@@ -0,0 +1 @@\n+maxPods: 5\n`);
  });

  it('is empty when only the mode changes', () => {
    expect(fileDiff({ ...CONFIG, content: 'maxPods: 4\n' })).toBe('');
  });
});

describe('maskObject', () => {
  it.each([
    [CONFIG_MAP, CONFIG_MAP],
    [
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, type: 'x', data: { a: 'aHVzaA==' }, stringData: { b: 'hush' } },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, type: 'x', data: { a: '[secret]' }, stringData: { b: '[secret]' } },
    ],
  ])('%j', (object, expected) => {
    expect(maskObject(object)).toEqual(expected);
  });
});
