import { describe, expect, it } from 'vitest';
import { driftOf, type PendingChanges } from '../../../src/fleet/drift/drift.ts';
import type { HostOutcome } from '../../../src/fleet/run/fleet.ts';
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

function subjects(changes: readonly Change[], verbosity = 0, kubelet?: PendingChanges): readonly string[] {
  const host = { name: 'a', phases: [{ phase: 'kubelet-start', plan: { changes } }] };
  const outcome: HostOutcome = { host: 'a', status: 'pending', plan: { host, warnings: [], refusals: [] }, error: null };
  return driftOf(outcome, { verbosity, kubelet }).map(({ what }) => what);
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

  it('contains what the running kubelet has not read, whether or not the plan restarts it', () => {
    const pending = { what: 'drop-in', why: 'a test' };
    const failure = { what: 'failure', why: 'a test' };
    const kubelet = { pending: [pending], failures: [failure] };
    expect(subjects([], 0, kubelet)).toEqual(['drop-in', 'failure']);
    expect(subjects([RESTART], 0, kubelet)).toEqual(['drop-in', 'failure']);
    expect(subjects([write('/etc/x'), RESTART], 0, kubelet)).toEqual(['/etc/x', 'drop-in', 'failure']);
    expect(subjects([RESTART], 0, { pending: [], failures: [failure] })).toEqual(['unit kubelet', 'failure']);
  });

  it('is that of a joined host without /var/lib/kubelet/config.yaml, but not of a host that joins', () => {
    const created = (path: string): Change => ({ ...write(path), action: 'create', before: null }) as Change;
    expect(subjects([created('/var/lib/kubelet/config.yaml')])).toEqual(['/var/lib/kubelet/config.yaml']);
    for (const path of ['/etc/kubernetes/bootstrap-kubelet.conf', '/etc/kubernetes/kubelet.conf'])
      expect(subjects([created(path), created('/var/lib/kubelet/config.yaml')])).toEqual(['host']);
  });

  it('contains the record with a higher verbosity, and if it is the only change', () => {
    expect(subjects(changes, 1)).toEqual(['/etc/x', NODE_SETTINGS_PATH]);
    expect(subjects([write(NODE_SETTINGS_PATH)])).toEqual([NODE_SETTINGS_PATH]);
  });
});
