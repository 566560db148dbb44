import { describe, expect, it } from 'vitest';
import { AppError, interrupted } from '../../../src/base/errors.ts';
import { applyPhases, planPhases } from '../../../src/host/apply-phases.ts';
import { definePhase, type Phase, type PhaseContext, type PhaseDefinition } from '../../../src/host/phase.ts';
import type { Change, HostChange, PhasePlan } from '../../../src/host/plan/change.ts';
import type { WorkflowRun } from '../../../src/host/run-workflow.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../support/fake-host.ts';
import { fakeUnit } from '../../support/fake-units.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';
import { runWorkflow } from '../../support/run-workflow.ts';

const reason = 'a test';
const RESTART: HostChange = { kind: 'restart-unit', unit: 'kubelet', reason };
const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'kube-system' }, data: {} };

function write(path: string, content: string, before: string | null = null): HostChange {
  const found = before === null ? null : { content: before, mode: 0o644, owner: 'root:root' };
  return {
    kind: 'write-file',
    path,
    content,
    mode: 0o644,
    owner: 'root:root',
    action: before === null ? 'create' : 'update',
    before: found,
    reason,
  };
}

function world(files: Record<string, string> = {}) {
  const host = fakeHost({ files, units: { kubelet: fakeUnit({ activeState: 'active' }) } });
  const cluster = fakeCluster();
  const reporter = recordingReporter();
  const context: PhaseContext = { host, cluster, clock: fakeClock(), reporter };
  return { host, cluster, reporter, context };
}

/** A phase whose plan never depends on the state. */
function phase(name: string, plan: PhasePlan, more: Partial<PhaseDefinition<null, null>> = {}): Phase<null> {
  return definePhase<null, null>({ name, short: `Do ${name}`, observe: async () => null, plan: () => plan, ...more });
}

/** A phase that requires a file with this text. */
function filePhase(path: string, text: string, more: Partial<PhaseDefinition<null, string | null>> = {}): Phase<null> {
  return definePhase<null, string | null>({
    name: `write ${path}`,
    short: `Write ${path}`,
    observe: async ({ host }) => (await host.query({ it: { kind: 'file', path } })).it?.content ?? null,
    plan: (found) => (found === text ? { changes: [], noop: `${path} is current` } : { changes: [write(path, text, found)] }),
    ...more,
  });
}

async function run(phases: readonly Phase<null>[], context: PhaseContext) {
  return applyPhases(phases, context, null, await planPhases(phases, context, null));
}

const unhealthy = new AppError({ host: 'node1', code: 'KUBELET_UNHEALTHY', message: 'it does not run' }, { detail: 'its journal' });
const failVerify = async (): Promise<void> => {
  throw unhealthy;
};

describe('planPhases', () => {
  it('returns the plans of the phases in order and changes nothing', async () => {
    const { host, context } = world({ '/b': 'as wanted' });
    const plans = await planPhases(
      [filePhase('/a', '1'), filePhase('/b', 'as wanted'), phase('c', { changes: [], deferred: 'later' })],
      context,
      null,
    );
    expect(plans.map(({ phase: name, plan }) => [name, plan.changes.length, plan.noop ?? plan.deferred])).toEqual([
      ['write /a', 1, undefined],
      ['write /b', 0, '/b is current'],
      ['c', 0, 'later'],
    ]);
    expect(host.performed).toEqual([]);
  });

  it('does not wait for the results of earlier phases', async () => {
    const { context } = world();
    const waits = phase('a', { changes: [] }, { ready: () => expect.unreachable() });
    await expect(planPhases([waits], context, null)).resolves.toHaveLength(1);
  });
});

describe('applyPhases', () => {
  it('applies the phases in order and reports progress', async () => {
    const { host, reporter, context } = world();
    const applied = await run([filePhase('/a', '1'), filePhase('/b', '2')], context);
    expect(host.texts()).toEqual({ '/a': '1', '/b': '2' });
    expect(applied.map(({ phase: name }) => name)).toEqual(['write /a', 'write /b']);
    expect(reporter.codes()).toEqual(['PHASE_STARTED', 'CHANGE_DONE', 'PHASE_STARTED', 'CHANGE_DONE']);
  });

  it('plans no change on the second run, and reports the reason', async () => {
    const { host, reporter, context } = world();
    const phases = [filePhase('/a', '1')];
    await run(phases, context);
    const done = host.performed.length;
    const again = await run(phases, context);
    expect(again[0]?.plan.changes).toEqual([]);
    expect(host.performed).toHaveLength(done);
    expect(reporter.messages('PHASE_NOOP')).toEqual(['/a is current']);
  });

  it('lets a phase observe the changes of the previous phase', async () => {
    const { context, host } = world();
    const copy = definePhase<null, string | null>({
      name: 'copy',
      short: 'Copy',
      observe: async ({ host: of }) => (await of.query({ it: { kind: 'file', path: '/a' } })).it?.content ?? null,
      plan: (found) => (found === null ? { changes: [], deferred: 'needs /a' } : { changes: [write('/copy', found)] }),
    });
    await run([filePhase('/a', '1'), copy], context);
    expect(host.text('/copy')).toBe('1');
  });

  it('verifies both applied changes and an unchanged state', async () => {
    const { context } = world({ '/b': '2' });
    const seen: (readonly [string, readonly Change[]])[] = [];
    const verify = (name: string) => ({
      verify: async (_: PhaseContext, __: null, facts: string | null, applied: readonly Change[]) => {
        seen.push([`${name} was ${facts}`, applied]);
      },
    });
    await run([filePhase('/a', '1', verify('/a')), filePhase('/b', '2', verify('/b'))], context);
    expect(seen).toEqual([
      ['/a was null', [write('/a', '1')]],
      ['/b was 2', []],
    ]);
  });

  it('does not verify a deferred phase whose files are staged', async () => {
    const { host, reporter, context } = world();
    await run([phase('p', { changes: [write('/a', '1')], deferred: 'at boot' }, { verify: () => expect.unreachable() })], context);
    expect(host.text('/a')).toBe('1');
    expect(reporter.messages('PHASE_DEFERRED')).toEqual(['later: at boot']);
  });

  it('reports warnings', async () => {
    const { reporter, context } = world();
    await run([phase('p', { changes: [], warnings: [{ code: 'DROPIN_DIFFERS', message: 'mind' }] })], context);
    expect(reporter.events).toContainEqual({ level: 'warning', code: 'DROPIN_DIFFERS', host: 'node1', phase: 'p', message: 'mind' });
  });

  it('applies changes of host and cluster in the order of the plan', async () => {
    const { host, cluster, reporter, context } = world();
    const changes: readonly Change[] = [
      write('/a', '1'),
      write('/b', '2'),
      { kind: 'create-object', object: CONFIG_MAP, reason },
      write('/c', '3'),
      {
        kind: 'patch-object',
        ref: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'x' },
        patch: { data: { a: 'b' } },
        reason,
      },
    ];
    await run([phase('p', { changes })], context);
    expect(reporter.messages('CHANGE_DONE')).toEqual([
      'created /a',
      'created /b',
      'created ConfigMap kube-system/x',
      'created /c',
      'patched ConfigMap kube-system/x',
    ]);
    expect(host.roundTrips).toBe(2);
    expect(cluster.calls.map((call) => call.split(' ')[0])).toEqual(['create', 'patch']);
  });

  it('reports that the plan changed since it was shown, and applies the new plan', async () => {
    const { host, reporter, context } = world({ '/a': 'old' });
    const phases = [filePhase('/a', 'new')];
    const planned = await planPhases(phases, context, null);
    host.files.set('/a', { type: 'file', mode: 0o644, owner: 'root:root', content: 'edited by hand' });
    await applyPhases(phases, context, null, planned);
    expect(reporter.codes()).toEqual(['PHASE_STARTED', 'PLAN_CHANGED', 'PLAN_DIFFERENCE', 'CHANGE_DONE']);
    const [difference] = reporter.messages('PLAN_DIFFERENCE');
    expect(difference).toMatch(/^difference between the plan and the applied changes:\n--- planned\n\+\+\+ now\n/);
    expect(difference).toMatch(/^-\s+-old$/m);
    expect(difference).toMatch(/^\+\s+-edited by hand$/m);
    expect(host.text('/a')).toBe('new');
  });

  it.each(['saved', 'approved'] as const)(
    'reports the difference and applies nothing when only the %s plan may be applied',
    async (exact) => {
      const { host, reporter, context } = world({ '/a': 'old' });
      const phases = [filePhase('/a', 'new')];
      const planned = await planPhases(phases, context, null);
      host.files.set('/a', { type: 'file', mode: 0o644, owner: 'root:root', content: 'edited by hand' });
      await expect(applyPhases(phases, context, null, planned, { exact })).rejects.toMatchObject({
        code: 'PLAN_STALE',
        problems: [
          {
            message: expect.stringMatching(new RegExp(`: the host or the cluster changed since the plan was ${exact}$`)),
            hint: expect.stringMatching(exact === 'saved' ? /--replan$/ : /rerun kubeletadm apply/),
          },
        ],
      });
      expect(reporter.messages('PLAN_DIFFERENCE').join()).toContain(`difference between the ${exact} plan and the current plan:\n`);
      expect(reporter.messages('PLAN_DIFFERENCE').join()).toMatch(/^\+\s+-edited by hand$/m);
      expect(host.text('/a')).toBe('edited by hand');
    },
  );

  describe('when an earlier phase changed the same object', () => {
    const stop: HostChange = { kind: 'stop-unit', unit: 'kubelet', reason };
    const unitPhase = (name: string): Phase<null> =>
      definePhase<null, boolean>({
        name,
        short: `Do ${name}`,
        observe: async ({ host }) => (host as FakeHost).units.get('kubelet')?.state.activeState === 'active',
        plan: (runs) => (runs ? { changes: [stop] } : { changes: [], noop: 'it is stopped' }),
      });
    const ROLE = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'x' } } as const;
    const objectPhase = (name: string): Phase<null> =>
      definePhase<null, boolean>({
        name,
        short: `Do ${name}`,
        observe: async ({ cluster }) => (await cluster?.get({ ...ROLE, name: 'x' })) !== null,
        plan: (exists) => ({ changes: exists ? [] : [{ kind: 'create-object', object: ROLE, reason }] }),
      });

    it.each<[string, readonly Phase<null>[]]>([
      [
        'a file was written',
        [filePhase('/a', 'mine'), filePhase('/a', 'mine', { name: 'again' }), filePhase('/a', 'other', { name: 'third' })],
      ],
      ['a unit was stopped', [unitPhase('one'), unitPhase('two')]],
      ['an object was created', [objectPhase('one'), objectPhase('two')]],
    ])('does not report a changed plan: %s', async (_, phases) => {
      const { reporter, context } = world({ '/a': 'old' });
      await run(phases, context);
      expect(reporter.codes()).toContain('CHANGE_DONE');
      expect(reporter.codes()).not.toContain('PLAN_CHANGED');
    });

    it('reports a concurrent change of another file', async () => {
      const { host, reporter, context } = world({ '/b': 'old' });
      const interfere = async (): Promise<void> => {
        host.files.set('/b', { type: 'file', mode: 0o644, owner: 'root:root', content: 'edited by hand' });
      };
      await run([filePhase('/a', '1', { verify: interfere }), filePhase('/b', '2')], context);
      expect(reporter.events.filter(({ code }) => code === 'PLAN_CHANGED').map(({ phase: name }) => name)).toEqual(['write /b']);
    });
  });

  describe('when another client created a planned object', () => {
    const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'x' } };
    const shared = (labels: Readonly<Record<string, string>> = {}): Phase<null> =>
      definePhase<null, KubeObject | null>({
        name: 'shared',
        short: 'Create a shared object',
        observe: async ({ cluster }) => (await cluster?.get({ ...NAMESPACE, name: 'x' })) ?? null,
        plan: (found) => {
          const object = { ...NAMESPACE, metadata: { name: 'x', labels } };
          if (found === null) return { changes: [{ kind: 'create-object', object, reason }, write('/a', '1')] };
          const differs = Object.entries(labels).some(([name, value]) => found.metadata.labels?.[name] !== value);
          return { changes: [...(differs ? [{ kind: 'update-object', object, before: found, reason } as const] : []), write('/a', '1')] };
        },
      });

    it.each([undefined, 'saved', 'approved'] as const)('makes the remaining changes without a difference (plan: %s)', async (exact) => {
      const { host, reporter, cluster, context } = world();
      const planned = await planPhases([shared()], context, null);
      await cluster.create(NAMESPACE);
      await applyPhases([shared()], context, null, planned, { exact });
      expect(reporter.codes()).toEqual(['PHASE_STARTED', 'CHANGE_DONE']);
      expect(host.text('/a')).toBe('1');
    });

    it('makes the remaining changes if the object is created at the same moment', async () => {
      const { host, reporter, cluster, context } = world();
      const planned = await planPhases([shared()], context, null);
      const create = async (object: KubeObject): Promise<KubeObject> => {
        await cluster.create(NAMESPACE);
        return cluster.create(object);
      };
      const applied = await applyPhases([shared()], { ...context, cluster: { ...cluster, create } }, null, planned);
      expect(applied.flatMap(({ plan }) => plan.changes.map(({ kind }) => kind))).toEqual(['write-file']);
      expect(reporter.messages('CHANGE_DONE')[0]).toBe('Namespace x was created meanwhile');
      expect(reporter.codes()).not.toContain('PLAN_CHANGED');
      expect(host.text('/a')).toBe('1');
    });

    it('reports a changed plan if the object has other content', async () => {
      const { reporter, cluster, context } = world();
      const planned = await planPhases([shared({ team: 'a' })], context, null);
      await cluster.create(NAMESPACE);
      await applyPhases([shared({ team: 'a' })], context, null, planned);
      expect(reporter.codes()).toContain('PLAN_CHANGED');
    });
  });

  it('does not report a changed plan when only a reason or the status of an object differs', async () => {
    const { reporter, context } = world();
    const made = (await context.cluster?.create(CONFIG_MAP)) as KubeObject;
    const update = (found: KubeObject, why: string): Change => ({
      kind: 'update-object',
      object: { ...found, data: { a: '1' } },
      before: found,
      reason: why,
    });
    const older = { ...made, metadata: { ...made.metadata, resourceVersion: '0' }, status: { replicas: 0 } };
    const planned = [{ phase: 'p', plan: { changes: [write('/a', '1'), update(older, 'its data differ')] } }];
    const now = { ...write('/a', '1'), reason: 'another reason' };
    await applyPhases([phase('p', { changes: [now, update(made, 'it is old')] })], context, null, planned);
    expect(reporter.codes()).not.toContain('PLAN_CHANGED');
  });

  it('does not report a changed plan when a deferred phase gets its changes', async () => {
    const { reporter, context } = world();
    const phases = [phase('p', { changes: [write('/a', '1')] })];
    await applyPhases(phases, context, null, [{ phase: 'p', plan: { changes: [], deferred: 'later' } }]);
    expect(reporter.codes()).not.toContain('PLAN_CHANGED');
  });

  it('stops at the phase that fails', async () => {
    const { host, context } = world();
    host.failAt(1);
    await expect(run([filePhase('/a', '1'), filePhase('/b', '2'), filePhase('/c', '3')], context)).rejects.toMatchObject({
      code: 'HOST_OPERATION_FAILED',
      exitCode: 1,
    });
    expect(host.texts()).toEqual({ '/a': '1' });
  });

  it('restores files when a phase fails partway', async () => {
    const { host, reporter, context } = world({ '/a': 'old' });
    host.failAt(2);
    const changes = [write('/a', 'new', 'old'), write('/b', 'new'), write('/c', 'new')];
    await expect(run([phase('p', { changes })], context)).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
    expect(host.texts()).toEqual({ '/a': 'old' });
    expect(reporter.codes()).toContain('CHANGES_REVERTED');
  });

  describe('when the applied configuration does not work', () => {
    const good = 'the good configuration';
    const undo = (_: string | null, applied: readonly HostChange[]): readonly HostChange[] =>
      applied.flatMap((change) =>
        change.kind === 'write-file' && change.before !== null ? [{ ...change, ...change.before, before: null }, RESTART] : [],
      );

    it('rolls back and exits with code 5', async () => {
      const { host, reporter, context } = world({ '/a': good });
      let undone = 0;
      const verifyUndone = async (): Promise<void> => {
        expect(host.text('/a')).toBe(good);
        undone++;
      };
      const failure = run([filePhase('/a', 'bad', { verify: failVerify, undo, verifyUndone })], context);
      await expect(failure).rejects.toMatchObject({
        exitCode: 5,
        detail: 'its journal',
        problems: [{ code: 'KUBELET_UNHEALTHY' }, { code: 'ROLLED_BACK', host: 'node1' }],
      });
      expect([host.text('/a'), host.units.get('kubelet')?.starts, undone]).toEqual([good, 1, 1]);
      expect(reporter.codes()).toEqual(['PHASE_STARTED', 'CHANGE_DONE', 'ROLLBACK_STARTED', 'CHANGE_DONE', 'CHANGE_DONE']);
      expect(reporter.events[2]?.data).toEqual({ cause: 'it does not run' });
    });

    it('rolls back a state that does not last, before a later phase runs', async () => {
      const { host, context } = world({ '/a': good });
      const verifyUndone = async (): Promise<void> => undefined;
      const failure = run([filePhase('/a', 'bad', { verify: async () => failVerify, undo, verifyUndone }), filePhase('/b', 'x')], context);
      await expect(failure).rejects.toMatchObject({ exitCode: 5, problems: [{ code: 'KUBELET_UNHEALTHY' }, { code: 'ROLLED_BACK' }] });
      expect([host.text('/a'), host.files.has('/b')]).toEqual([good, false]);
    });

    it('waits at the end of the run for a state that cannot be rolled back: its time passes in later phases', async () => {
      const { host, context } = world();
      const lasts = async (): Promise<void> => {
        expect(host.text('/b')).toBe('x');
        throw unhealthy;
      };
      await expect(run([filePhase('/a', 'new', { verify: async () => lasts }), filePhase('/b', 'x')], context)).rejects.toBe(unhealthy);
    });

    it('reports both errors when the old configuration does not work either', async () => {
      const { host, context } = world({ '/a': good });
      const verifyUndone = async (): Promise<void> => {
        throw new AppError({ code: 'KUBELET_UNHEALTHY', message: 'still not' });
      };
      const failure = run([filePhase('/a', 'bad', { verify: failVerify, undo, verifyUndone })], context);
      await expect(failure).rejects.toMatchObject({
        exitCode: 1,
        problems: [{ code: 'KUBELET_UNHEALTHY' }, { code: 'ROLLBACK_FAILED', message: expect.stringContaining('still not') }],
      });
      expect(host.text('/a')).toBe(good);
    });

    it('keeps the restored files when the rollback fails', async () => {
      const { host, context } = world({ '/a': good });
      host.failAt(2);
      const failure = run([filePhase('/a', 'bad', { verify: failVerify, undo })], context);
      await expect(failure).rejects.toMatchObject({ exitCode: 1, problems: [{ code: 'KUBELET_UNHEALTHY' }, { code: 'ROLLBACK_FAILED' }] });
      expect(host.text('/a')).toBe(good);
    });

    it.each<[string, Partial<PhaseDefinition<null, string | null>>]>([
      ['the phase defines no rollback', {}],
      ['no valid previous state exists', { undo: () => null }],
      ['nothing was changed', { undo: () => [] }],
    ])('does not roll back when %s', async (_, more) => {
      const { host, context } = world({ '/a': good });
      await expect(run([filePhase('/a', 'bad', { verify: failVerify, ...more })], context)).rejects.toBe(unhealthy);
      expect(host.text('/a')).toBe('bad');
    });

    it('does not roll back because of a bug', async () => {
      const { host, context } = world({ '/a': good });
      const verify = async (): Promise<void> => {
        throw new TypeError('a bug');
      };
      await expect(run([filePhase('/a', 'new', { verify, undo })], context)).rejects.toThrow('a bug');
      expect(host.text('/a')).toBe('new');
    });
  });

  describe('when the user interrupts it', () => {
    const interruptible = (files: Record<string, string> = {}) => {
      const stop = new AbortController();
      const made = world(files);
      const interrupt = (): void => stop.abort(interrupted('SIGINT'));
      return { ...made, interrupt, context: { ...made.context, signal: stop.signal } satisfies PhaseContext };
    };

    it('finishes the changes in progress, and starts no further change', async () => {
      const { host, context, interrupt, reporter } = interruptible();
      const two = phase('two', { changes: [write('/a', '1'), write('/b', '2')] });
      const report: PhaseContext['reporter']['report'] = (event) => {
        reporter.report(event);
        if (event.message === 'created /a') interrupt();
      };
      await expect(run([two, filePhase('/c', '3')], { ...context, reporter: { report } })).rejects.toMatchObject({
        exitCode: 130,
        problems: [{ code: 'INTERRUPTED' }],
      });
      expect(['/a', '/b', '/c'].map((path) => host.files.has(path))).toEqual([true, true, false]);
      expect(reporter.codes()).toEqual(['PHASE_STARTED', 'CHANGE_DONE', 'INTERRUPTED', 'CHANGE_DONE']);
    });

    it('rolls back unverified changes, and verifies the rollback without interruption', async () => {
      const { host, context, interrupt } = interruptible({ '/a': 'good' });
      let proven = false;
      const verify = async ({ signal }: PhaseContext): Promise<void> => {
        interrupt();
        signal?.throwIfAborted();
      };
      const verifyUndone = async ({ signal }: PhaseContext): Promise<void> => {
        signal?.throwIfAborted();
        proven = true;
      };
      const undo = () => [write('/a', 'good', 'new')];
      await expect(run([filePhase('/a', 'new', { verify, undo, verifyUndone })], context)).rejects.toMatchObject({
        exitCode: 5,
        problems: [{ code: 'INTERRUPTED' }, { code: 'ROLLED_BACK' }],
      });
      expect([host.text('/a'), proven]).toEqual(['good', true]);
    });
  });

  describe('with a phase that waits for a condition', () => {
    const late = new AppError({ code: 'BOOTSTRAP_TIMEOUT', message: 'too late' });
    const notReady = async (): Promise<void> => {
      throw late;
    };

    it('waits before it observes the host', async () => {
      const { host, context } = world();
      const ready = async (): Promise<void> => {
        host.files.set('/a', { type: 'file', mode: 0o644, owner: 'root:root', content: '1' });
      };
      const [applied] = await run([filePhase('/a', '1', { ready })], context);
      expect(applied?.plan.noop).toBe('/a is current');
    });

    it('applies nothing when the wait fails', async () => {
      const { host, context } = world();
      await expect(run([filePhase('/a', '1', { ready: notReady })], context)).rejects.toBe(late);
      expect(host.performed).toEqual([]);
    });

    it('applies a cleanup phase even when the wait fails', async () => {
      const { host, context } = world();
      await expect(run([filePhase('/a', '1', { ready: notReady, runsAfterFailure: true })], context)).rejects.toBe(late);
      expect(host.text('/a')).toBe('1');
    });
  });
});

describe('runWorkflow', () => {
  const warned = (phases: readonly Phase<null>[]) => ({
    name: 'test',
    phases,
    prepare: async () => ({ input: null, warnings: [{ code: 'OLD', message: 'it is old' }], refusals: [] }),
  });
  const go = (phases: readonly Phase<null>[], context: PhaseContext, change: Partial<WorkflowRun> = {}) =>
    runWorkflow(warned(phases), context, null, { dryRun: false, skipPhases: [], ...change });

  it('reports warnings before any change, also when the run fails later', async () => {
    const { context, reporter } = world();
    await expect(go([filePhase('/a', '1', { verify: failVerify })], context)).rejects.toBe(unhealthy);
    expect(reporter.codes()).toEqual(['OLD', 'PHASE_STARTED', 'CHANGE_DONE']);
    expect(reporter.events[0]).toMatchObject({ level: 'warning', host: 'node1', message: 'it is old' });
  });

  it('skips phases by name, including control-plane phases, and accepts the phase names of kubeadm', async () => {
    const names = ['etcd/local', 'control-plane/scheduler', 'kubelet-start'];
    const phases = names.map((name) => phase(name, { changes: [], noop: 'fine' }));
    const done = async (name: 'upgrade node' | 'join', skipPhases: readonly string[]): Promise<readonly string[]> => {
      const { host } = await runWorkflow(
        { ...warned(phases), name, absentPhases: name === 'join' ? ['etcd-join'] : ['addon'] },
        world().context,
        null,
        {
          dryRun: true,
          skipPhases,
        },
      );
      return host.phases.map((each) => each.phase);
    };
    expect(await done('upgrade node', ['control-plane/scheduler', 'addon'])).toEqual(['etcd/local', 'kubelet-start']);
    expect(await done('upgrade node', ['control-plane', 'etcd'])).toEqual(['kubelet-start']);
    await expect(done('upgrade node', ['control-plan'])).rejects.toThrow('upgrade node has no phase control-plan');
    await expect(done('join', ['addon'])).rejects.toThrow('join has no phase addon');
  });

  describe('with a limit for the impact', () => {
    const drain: HostChange = { ...write('/a', '1'), impact: 'drain' };
    const phases = [phase('one', { changes: [drain, { ...RESTART, impact: 'safe' }] })];

    it('refuses a higher one before anything is written', async () => {
      const { context, host } = world();
      await expect(go(phases, context, { allow: 'new-pods-only' })).rejects.toMatchObject({
        exitCode: 3,
        problems: [{ host: 'node1', code: 'IMPACT_NOT_ALLOWED' }],
      });
      expect(host.performed).toEqual([]);
    });

    it('shows the plan of a dry run with the refusal', async () => {
      const { refusals, host } = await go(phases, world().context, { dryRun: true, allow: 'safe' });
      expect(refusals).toMatchObject([{ code: 'IMPACT_NOT_ALLOWED' }]);
      expect(host.phases[0]?.plan.changes).toHaveLength(2);
    });

    it.each([undefined, 'drain', 'unsafe'] as const)('applies it with %s', async (allow) => {
      const { context, host } = world();
      await go(phases, context, { allow });
      expect(host.text('/a')).toBe('1');
    });

    it('stops before a phase whose impact rose after the plan was shown', async () => {
      const { context, host } = world();
      const rising = definePhase<null, boolean>({
        name: 'two',
        short: 'Do two',
        observe: async () => host.files.has('/a'),
        plan: (hasStarted) => ({ changes: [{ ...write('/b', '2'), ...(hasStarted ? { impact: 'unsafe' as const } : {}) }] }),
      });
      const safe = phase('one', { changes: [{ ...write('/a', '1'), impact: 'safe' }] });
      await expect(go([safe, rising], context, { allow: 'drain' })).rejects.toMatchObject({ exitCode: 1, code: 'IMPACT_NOT_ALLOWED' });
      expect([host.files.has('/a'), host.files.has('/b')]).toEqual([true, false]);
    });
  });

  it('reports the warnings of a dry run, including those of the plans', async () => {
    const { context, reporter } = world();
    const plan = { changes: [], noop: 'fine', warnings: [{ code: 'EDITED', message: 'by hand' }] };
    await go([phase('one', plan)], context, { dryRun: true });
    expect(reporter.codes()).toEqual(['OLD', 'EDITED']);
  });
});
