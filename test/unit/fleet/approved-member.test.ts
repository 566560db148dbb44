import { expect, it } from 'vitest';
import { operationsOf } from '../../../src/fleet/plan/operations.ts';
import { approvedMember } from '../../../src/fleet/use-cases/approved-member.ts';
import type { Change } from '../../../src/host/plan/change.ts';
import type { HostPlan } from '../../../src/host/plan/document.ts';
import { changesOf } from '../../../src/host/plan/fold.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

const reason = 'a test';
const create = (name: string): Change => ({
  kind: 'create-object',
  object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
  reason,
});
const write = (content: string): Change => ({
  ...{ kind: 'write-file', path: '/etc/a', content, mode: 0o644, owner: 'root:root', before: null, action: 'create', reason },
});
const planOf = (...changes: readonly Change[]): HostPlan => ({ name: 'h1', phases: [{ phase: 'a-phase', plan: { changes } }] });

it('a rejected host shows the difference without objects that others have created as planned', async () => {
  const planned = planOf(create('shared'), create('own'), write('1'));
  const now = planOf(create('own'), write('2'));
  const open = async () => ({
    planned: { host: now, warnings: [], refusals: [] },
    apply: async () => now,
    close: async () => undefined,
  });
  const approved = { operations: operationsOf(planned), planned: changesOf(planned) };
  const reporter = recordingReporter();
  const member = approvedMember({ name: 'h1', open }, approved, { replan: false });
  const opened = member.open({ parseText: JSON.parse, reporter, signal: new AbortController().signal, isInspection: false });
  await expect(opened).rejects.toMatchObject({ code: 'PLAN_STALE', exitCode: 3 });
  const [difference = ''] = reporter.messages('PLAN_DIFFERENCE');
  expect(difference).toContain('/etc/a');
  expect(difference).not.toMatch(/shared|own/);
});
