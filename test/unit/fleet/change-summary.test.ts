import { describe, expect, it } from 'vitest';
import { summarizeChanges } from '../../../src/fleet/plan/change-summary.ts';
import type { Change } from '../../../src/host/plan/change.ts';

function summaryOf(changes: readonly Change[]): readonly string[] {
  return summarizeChanges({ phases: [{ phase: 'x', plan: { changes } }] });
}

const pull = (image: string): Change => ({ kind: 'pull-image', image, criSocket: 'unix:///run/cri.sock', reason: 'not on the host' });
const create = (kind: string, name: string): Change => ({
  kind: 'create-object',
  object: { apiVersion: 'v1', kind, metadata: { name } },
  reason: 'is missing',
});

describe('the summary of the changes of a host', () => {
  it('names up to three images and kinds of objects', () => {
    expect(summaryOf([pull('a:1'), pull('b:1')])).toEqual(['pulled a:1, b:1']);
    expect(summaryOf([create('Role', 'a'), create('Role', 'b'), create('Service', 'c')])).toEqual(['Role created', 'Service created']);
  });

  it('counts more', () => {
    const kinds = ['Role', 'RoleBinding', 'Service', 'ConfigMap', 'ConfigMap'];
    expect(summaryOf([...['a', 'b', 'c', 'd'].map(pull), ...kinds.map((kind, i) => create(kind, `n${i}`))])).toEqual([
      'pulled 4 images',
      '5 objects created',
    ]);
  });
});
