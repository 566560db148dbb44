import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import type { ReportEvent } from '../../../src/base/reporter.ts';
import { parseHistory, recordChange } from '../../../src/fleet/history/host-history.ts';
import type { Host } from '../../../src/host/access/host.ts';
import { HISTORY_PATH } from '../../../src/host/commit/revert-script.ts';
import type { Operation } from '../../../src/host/operation/operation.ts';
import type { HostPlan } from '../../../src/host/plan/document.ts';
import type { Cluster, KubeObject } from '../../../src/kube/cluster.ts';
import { fakeClock } from '../../support/fake-clock.ts';

const OWNER = { id: 'lock-1', name: 'alice@laptop', processId: 1, machine: 'm' };
const RESTART = { kind: 'restart-unit', unit: 'kubelet', reason: 'changed' } as const;
const PLAN: HostPlan = { name: 'n1', phases: [{ phase: 'kubelet-start', plan: { changes: [RESTART] } }] };

interface Faults {
  readonly perform?: AppError;
  readonly create?: AppError;
}

async function record({ plan, error }: { readonly plan: HostPlan; readonly error: AppError | null }, { perform, create }: Faults = {}) {
  const performed: Operation[] = [];
  let programs = 0;
  const events: KubeObject[] = [];
  const reported: ReportEvent[] = [];
  const host = {
    name: 'n1',
    perform: async (operations: readonly Operation[]) => {
      if (perform !== undefined) throw perform;
      programs++;
      performed.push(...operations);
    },
    close: async () => undefined,
  } as unknown as Host;
  const cluster = {
    create: async (object: KubeObject) => {
      if (create !== undefined) throw create;
      events.push(object);
      return object;
    },
  } as unknown as Cluster;
  await recordChange(
    {
      id: 'change-1',
      host,
      connect: async () => host,
      writing: { owner: OWNER, breakLock: false, isGone: () => false, confirm: null },
      note: { command: 'apply', reason: 'ticket 7' },
      cluster,
      node: 'node-a',
      clock: fakeClock(new Date('2030-01-01T00:00:00Z')),
      reporter: { report: (event) => reported.push(event) },
    },
    plan,
    error,
  );
  return { performed, programs, events, reported };
}

describe('the record of a change', () => {
  it('is written under the lock of the host, and announced as an Event of the Node', async () => {
    const { performed, programs, events, reported } = await record({ plan: PLAN, error: null });
    expect(programs).toBe(1);
    expect(performed.map(({ kind }) => kind)).toEqual(['take-lock', 'append-journal', 'release-lock']);
    const written = performed.find((operation) => operation.kind === 'append-journal');
    expect(written).toMatchObject({ path: HISTORY_PATH, id: 'change-1', isOptional: false });
    expect(parseHistory(written?.entry ?? '')).toMatchObject([
      {
        time: '2030-01-01T00:00:00.000Z',
        operator: 'alice@laptop',
        id: 'change-1',
        command: 'apply',
        reason: 'ticket 7',
        result: 'changed',
      },
    ]);
    expect(events).toMatchObject([
      {
        kind: 'Event',
        involvedObject: { kind: 'Node', name: 'node-a' },
        type: 'Normal',
        reason: 'KubeletadmApplied',
        message: 'alice@laptop: apply (ticket 7): kubelet-start restart-unit kubelet',
        source: { component: 'kubeletadm' },
      },
    ]);
    expect(reported).toEqual([]);
  });

  it.each([
    [5, 'rolled-back', 'KubeletadmRolledBack', 'rolled back'],
    [1, 'failed', 'KubeletadmFailed', 'failed'],
  ] as const)('has the result of a run with exit code %s, and its changes as planned', async (exitCode, result, reason, shown) => {
    const error = new AppError({ code: 'KUBELET_UNHEALTHY', message: 'kubelet not healthy' }, { exitCode });
    const { performed, events } = await record({ plan: PLAN, error });
    const written = performed.find((operation) => operation.kind === 'append-journal');
    expect(JSON.parse(written?.entry ?? '')).toMatchObject({
      result,
      problems: ['KUBELET_UNHEALTHY'],
    });
    const message = `alice@laptop: apply (ticket 7): ${shown}; planned: kubelet-start restart-unit kubelet`;
    expect(events).toMatchObject([{ type: 'Warning', reason, message }]);
  });

  it('has no change if the hook before the change failed: only the hook was run', async () => {
    const hook = {
      kind: 'run-hook',
      hook: 'beforeChange',
      command: ['drain'],
      environment: {},
      timeoutSeconds: 60,
      reason: 'a test',
    } as const;
    const plan: HostPlan = { ...PLAN, phases: [{ phase: 'before-change', plan: { changes: [hook] } }, ...PLAN.phases] };
    const refused = new AppError({ code: 'HOOK_FAILED', message: 'exited with code 1' }, { exitCode: 3 });
    const { performed, events } = await record({ plan, error: refused });
    const written = performed.find((operation) => operation.kind === 'append-journal');
    expect(JSON.parse(written?.entry ?? '')).toMatchObject({
      result: 'refused',
      problems: ['HOOK_FAILED'],
      fields: [],
      changes: ['before-change run-hook drain'],
    });
    expect(parseHistory(written?.entry ?? '')).toHaveLength(1);
    expect(events).toMatchObject([
      {
        type: 'Warning',
        reason: 'KubeletadmRefused',
        message: 'alice@laptop: apply (ticket 7): nothing was changed, because the hook beforeChange failed',
      },
    ]);
    // The hook after the change fails when the change is done.
    const failed = await record({ plan, error: new AppError({ code: 'HOOK_FAILED', message: 'exited with code 1' }, { exitCode: 1 }) });
    expect(failed.events).toMatchObject([{ reason: 'KubeletadmFailed' }]);
  });

  it('is not made for a host without changes', async () => {
    const plan = { name: 'n1', phases: [{ phase: 'kubelet-start', plan: { changes: [], noop: 'unchanged' } }] };
    expect(await record({ plan, error: null })).toEqual({ performed: [], programs: 0, events: [], reported: [] });
  });

  it('only warns if the host or the API server refuses it', async () => {
    const perform = new AppError({ code: 'HOST_NO_SPACE', message: 'no space' });
    const full = await record({ plan: PLAN, error: null }, { perform });
    expect(full.reported).toMatchObject([{ level: 'warning', code: 'HISTORY_NOT_WRITTEN', host: 'n1' }]);
    expect(full.events).toHaveLength(1);
    const locked = new AppError({ code: 'HOST_LOCKED', message: 'locked by another run' });
    expect((await record({ plan: PLAN, error: locked }, { perform: locked })).reported).toEqual([]);
    const create = new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'forbidden' });
    const forbidden = await record({ plan: PLAN, error: null }, { create });
    expect(forbidden.reported).toMatchObject([{ level: 'warning', code: 'EVENT_NOT_CREATED', verbosity: 1 }]);
  });
});
