import { describe, expect, it } from 'vitest';
import { renderText } from '../../../src/base/text/styled.ts';
import { renderPlan } from '../../../src/cli/output/show-plan.ts';
import type { Change } from '../../../src/host/plan/change.ts';
import { planDocument } from '../../../src/host/plan/document.ts';
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
  return renderText(renderPlan(plan, 'text', { verbosity }), false);
}

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
