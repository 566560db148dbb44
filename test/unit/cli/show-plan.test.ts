import { describe, expect, it } from 'vitest';
import { joinLines, renderText } from '../../../src/base/text/styled.ts';
import { foldedLines, planSummary } from '../../../src/cli/fleet-report.ts';
import { renderPlan } from '../../../src/cli/output/show-plan.ts';
import type { HostOutcome } from '../../../src/fleet/run/fleet.ts';
import type { Change } from '../../../src/host/plan/change.ts';
import { planDocument } from '../../../src/host/plan/document.ts';
import type { WorkflowResult } from '../../../src/host/run-workflow.ts';
import { NODE_SETTINGS_PATH } from '../../../src/kubeadm/node-settings/node-settings.ts';

const reason = 'a test';
const file = (path: string, value: number): Change => ({
  kind: 'write-file',
  path,
  mode: 0o644,
  owner: 'root:root',
  action: 'update',
  content: `maxPods: ${value}\n`,
  before: { content: 'maxPods: 4\n', mode: 0o644, owner: 'root:root' },
  reason,
});
const object = (kind: string, data: Readonly<Record<string, string>>) => ({
  apiVersion: 'v1',
  kind,
  metadata: { name: 'kubelet-config', namespace: 'kube-system', resourceVersion: String(Object.values(data).length) },
  data,
});

function shown(changes: readonly Change[], verbosity = 0): string {
  const plan = planDocument([{ name: 'node1', phases: [{ phase: 'p', plan: { changes } }] }], []);
  return renderText(renderPlan(plan, { format: 'text', verbosity, showsDiff: true }), false);
}

const fieldsOf = (path: string, before: number, fields: readonly string[]): Change => ({
  ...(file(path, 60) as Extract<Change, { kind: 'write-file' }>),
  before: { content: `maxPods: ${before}\nresolvConf: /run/${before}\n`, mode: 0o644, owner: 'root:root' },
  fields: fields.map((field) => ({ field, before: 110, after: 60, impact: 'new-pods-only' as const })),
});
const RESTART: Change = { kind: 'restart-unit', unit: 'kubelet', reason: 'config.yaml changed', impact: 'new-pods-only' };
const CONFIG = '/var/lib/kubelet/config.yaml';

function short(changes: readonly Change[]): readonly string[] {
  const plan = planDocument([{ name: 'node1', phases: [{ phase: 'p', plan: { changes } }] }], []);
  return renderText(renderPlan(plan, { format: 'text', verbosity: 0 }), false)
    .split('\n')
    .slice(1, -2);
}

const created = (path: string): Change => ({
  ...(file(path, 1) as Extract<Change, { kind: 'write-file' }>),
  action: 'create',
  before: null,
  reason: 'does not exist',
});
const outcome = (host: string, changes: readonly Change[]): HostOutcome => ({
  host,
  status: 'pending',
  plan: {
    host: { name: host, own: { node: host }, phases: [{ phase: 'p', plan: { changes } }] },
    warnings: [],
  } as unknown as WorkflowResult,
  error: null,
});
const folded = (...outcomes: readonly HostOutcome[]): string =>
  renderText(joinLines([...foldedLines(outcomes, { verbosity: 0 }), planSummary(outcomes)]), false);

describe('a plan in short', () => {
  it('has one line for each changed field, without the file', () => {
    expect(short([fieldsOf(CONFIG, 110, ['maxPods', 'podPidsLimit']), RESTART])).toEqual([
      '  ~ maxPods: 110 → 60 (new-pods-only)',
      '  ~ podPidsLimit: 110 → 60 (new-pods-only)',
      '  ~ restart kubelet: config.yaml changed (new-pods-only)',
    ]);
  });

  it('has one line for a created file, its other formats, and the directories that it needs', () => {
    const directory = (path: string): Change => ({
      kind: 'make-directory',
      path,
      mode: 0o700,
      owner: 'root:root',
      reason: 'does not exist',
    });
    const files = ['/pki/ca.crt', '/pki/ca.key', '/pki/etcd/ca.crt'].map(created);
    expect(short([directory('/pki'), directory('/data'), ...files])).toEqual([
      '  + /data/',
      '  + /pki/ca.crt, ca.key',
      '  + /pki/etcd/ca.crt',
    ]);
  });

  it('names the change of permissions and owner, with and without fields', () => {
    const reason = 'its content differs, mode 0666 → 0644, owner kube:kube → root:root';
    expect(short([{ ...file('/etc/x', 5), reason }])).toEqual([`  ~ /etc/x: ${reason}`]);
    expect(short([{ ...fieldsOf(CONFIG, 110, ['maxPods']), reason }])).toEqual([
      '  ~ maxPods: 110 → 60 (new-pods-only)',
      `  ~ ${CONFIG}: mode 0666 → 0644, owner kube:kube → root:root`,
    ]);
  });

  it('names created objects by kind, and updated ones with the reason', () => {
    const own = object('ConfigMap', {});
    const other = { ...own, metadata: { ...own.metadata, name: 'kubeadm-config' } };
    expect(
      short([
        { kind: 'create-object', object: own, reason: 'does not exist' },
        { kind: 'update-object', object: object('Secret', { a: 'x' }), before: object('Secret', {}), reason: 'its data.a differs' },
        { kind: 'create-object', object: other, reason: 'does not exist' },
        { kind: 'delete-object', ref: { apiVersion: 'v1', kind: 'Node', name: 'n1' }, reason: '--delete-node was given' },
      ]),
    ).toEqual([
      'cluster',
      '  + ConfigMap kube-system/kubelet-config, kube-system/kubeadm-config',
      '  ~ Secret kube-system/kubelet-config: its data.a differs',
      '  - Node n1: --delete-node was given',
    ]);
  });

  it('has at most 10 lines for 2 fields on 2 hosts whose files differ elsewhere', () => {
    const changes = (before: number): readonly Change[] => [fieldsOf(CONFIG, before, ['maxPods', 'podPidsLimit']), RESTART];
    expect(folded(outcome('node2', changes(1)), outcome('node3', changes(2)))).toBe(`node2, node3 (2 hosts)
  ~ maxPods: 110 → 60 (new-pods-only)
  ~ podPidsLimit: 110 → 60 (new-pods-only)
  ~ restart kubelet: config.yaml changed (new-pods-only)
2 hosts: 2 pending (2 fields on 2 hosts); highest impact: new-pods-only.
`);
  });

  it('has at most 12 lines for 2 fields on 50 hosts, and counts the fields, the hosts and the nodes that join', () => {
    const changes = (before: number): readonly Change[] => [fieldsOf(CONFIG, before, ['maxPods', 'podPidsLimit']), RESTART];
    const changed = Array.from({ length: 40 }, (_, i) => outcome(`node${i + 1}`, changes(i)));
    const joining = Array.from({ length: 10 }, (_, i) => outcome(`node${i + 41}`, [created('/etc/kubernetes/bootstrap-kubelet.conf')]));
    const text = folded(...changed, ...joining);
    expect(text.split('\n').length).toBeLessThanOrEqual(10);
    expect(text).toContain('node[1:40] (40 hosts)\n');
    expect(text).toContain('\n50 hosts: 50 pending (2 fields on 40 hosts; 10 nodes join); highest impact: new-pods-only.\n');
  });
});

describe('a plan as text', () => {
  const twins = [file('/var/lib/kubelet/config.yaml', 5), file(NODE_SETTINGS_PATH, 5)];

  it('shows and counts a change once, without the derived kubeletadm-node.yaml', () => {
    expect(shown(twins)).not.toContain(NODE_SETTINGS_PATH);
    expect(shown(twins)).toContain('1 change on 1 host');
    expect(shown(twins, 1)).toContain(NODE_SETTINGS_PATH);
    expect(shown(twins, 1)).toContain('2 changes on 1 host');
  });

  it('shows kubeletadm-node.yaml if nothing else changes', () => {
    expect(shown(twins.slice(1))).toContain(NODE_SETTINGS_PATH);
  });

  it('shows an updated object as a diff', () => {
    const before = object('ConfigMap', { kubelet: 'maxPods: 4\nport: 1\n' });
    const after = object('ConfigMap', { kubelet: 'maxPods: 5\nport: 1\n' });
    expect(shown([{ kind: 'update-object', object: after, before, reason }])).toContain(`update ConfigMap kube-system/kubelet-config: a test
      --- ConfigMap/kube-system/kubelet-config
      +++ ConfigMap/kube-system/kubelet-config
      @@ -1,7 +1,7 @@
       apiVersion: v1
       data:
         kubelet: |
      -    maxPods: 4
      +    maxPods: 5
           port: 1
       kind: ConfigMap
       metadata:
`);
  });

  it('omits the data of a Secret from the diff', () => {
    const text = shown([{ kind: 'update-object', object: object('Secret', { a: 'new' }), before: object('Secret', { a: 'old' }), reason }]);
    expect(text).toContain('a: "[secret]"');
    expect(text).not.toMatch(/new|old/);
  });
});
