import { describe, expect, it } from 'vitest';
import { driftOf } from '../../../src/fleet/drift.ts';
import type { HostOutcome } from '../../../src/fleet/fleet.ts';
import type { Change } from '../../../src/host/plan/change.ts';
import { NODE_SETTINGS_PATH } from '../../../src/kubeadm/node-settings/node-settings.ts';

const RESTART: Change = { kind: 'restart-unit', unit: 'kubelet', reason: 'a test' };
const write = (path: string): Change => ({
  kind: 'write-file',
  path,
  mode: 0o600,
  owner: 'root:root',
  content: '',
  action: 'update',
  before: { content: 'x', mode: 0o600, owner: 'root:root' },
  reason: 'a test',
});

function subjects(changes: readonly Change[], verbosity?: number): readonly string[] {
  const host = { name: 'a', phases: [{ phase: 'kubelet-start', plan: { changes } }] };
  const outcome: HostOutcome = { host: 'a', status: 'pending', plan: { host, warnings: [], refusals: [] }, error: null };
  return driftOf(outcome, verbosity).map(({ what }) => what);
}

describe('the drift of a host', () => {
  const changes = [write('/etc/x'), RESTART, write(NODE_SETTINGS_PATH)];

  it('leaves out the record of the declared settings, which follows from other changes', () => {
    expect(subjects(changes)).toEqual(['/etc/x']);
  });

  it('lists a restart only if no listed change of a file causes it', () => {
    expect(subjects([write('/etc/x'), RESTART])).toEqual(['/etc/x']);
    expect(subjects([RESTART])).toEqual(['unit kubelet']);
  });

  it('contains the record with a higher verbosity, and if it is the only change', () => {
    expect(subjects(changes, 1)).toEqual(['/etc/x', NODE_SETTINGS_PATH]);
    expect(subjects([write(NODE_SETTINGS_PATH)])).toEqual([NODE_SETTINGS_PATH]);
  });
});
