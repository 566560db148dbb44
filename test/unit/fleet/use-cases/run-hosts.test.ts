import { describe, expect, it } from 'vitest';
import { AppError, interrupted } from '../../../../src/base/errors.ts';
import type { RulesRequest } from '../../../../src/fleet/use-cases/fleet-rules.ts';
import { type HostsCommand, isShown, runTargets } from '../../../../src/fleet/use-cases/run-hosts.ts';
import type { Host } from '../../../../src/host/access/host.ts';
import type { HostPlan } from '../../../../src/host/plan/document.ts';
import { DEFAULT_RUN } from '../../../../src/host/run-settings.ts';
import type { PlanOnHost } from '../../../../src/host/run-workflow.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const RULES: RulesRequest = { parallel: 50, canary: { hosts: 0 }, maxUnavailable: null, maxFail: null };

/**
 * A run over hosts h1, h2, ... that records the applied hosts.
 * @param fails hosts of which the change fails
 * @param refuses hosts that preflight refuses
 */
async function runOver(
  count: number,
  {
    fails,
    refuses = [],
    inspectsFirst = refuses.length > 0,
    rules,
    more = {},
    onApply,
  }: {
    readonly fails: readonly string[];
    readonly refuses?: readonly string[];
    readonly inspectsFirst?: boolean;
    readonly rules?: RulesRequest;
    readonly more?: Partial<HostsCommand>;
    readonly onApply?: () => void;
  },
  signal = new AbortController().signal,
) {
  const applied: string[] = [];
  const connected: string[] = [];
  const open = { now: 0, most: 0 };
  const planHost: PlanOnHost = async ({ host: { name } }) => {
    if (refuses.includes(name)) throw new AppError({ host: name, code: 'PREFLIGHT', message: 'swap is on' }, { exitCode: 3 });
    const change = { kind: 'restart-unit', unit: 'kubelet', reason: 'a test' } as const;
    const host: HostPlan = { name, phases: [{ phase: 'kubelet-start', plan: { changes: [change] } }] };
    return {
      host,
      warnings: [],
      refusals: [],
      apply: async () => {
        applied.push(name);
        onApply?.();
        await new Promise((resolve) => setImmediate(resolve));
        if (fails.includes(name)) throw new AppError({ host: name, code: 'KUBELET_UNHEALTHY', message: 'the kubelet is unhealthy' });
        return host;
      },
    };
  };
  const result = await runTargets(
    {
      clock: fakeClock(),
      signal,
      self: { id: 1, name: 'test', machine: 'test', isRunning: () => true },
      newId: async () => 'id',
      connectHost: async ({ address = '' }) => {
        connected.push(address);
        open.most = Math.max(open.most, ++open.now);
        const close = async (): Promise<void> => {
          open.now--;
        };
        return { name: address, close } as unknown as Host;
      },
    } as unknown as Parameters<typeof runTargets>[0],
    {
      planHost,
      targets: Array.from({ length: count }, (_, i) => ({ address: `h${i + 1}` })),
      cluster: null,
      run: DEFAULT_RUN,
      warnings: [],
      inspectsFirst,
      ...more,
    },
    { writing: { breakLock: false, confirmMs: null }, ...(rules === undefined ? {} : { rules }), run: DEFAULT_RUN },
    { signal, reporterOf: () => recordingReporter(), reporter: recordingReporter() },
  );
  return {
    ...result,
    applied,
    connected,
    open,
    shown: result.outcomes.filter((outcome) => isShown(outcome, DEFAULT_RUN)).map(({ host }) => host),
  };
}

describe('a workflow on many hosts', () => {
  it('stops by default when too many hosts failed, and names the limit', async () => {
    const { applied, outcomes, failure } = await runOver(60, { fails: Array.from({ length: 60 }, (_, i) => `h${i + 1}`) });
    // The first failure is within the limit, so one more host starts in its place.
    expect(applied).toHaveLength(51);
    expect(outcomes.filter(({ status }) => status === 'not-started')).toHaveLength(9);
    expect(failure?.exitCode).toBe(4);
    expect(failure?.problems.at(-1)).toEqual({
      code: 'FLEET_STOPPED',
      message:
        'the run stopped before it processed 9 hosts: 51 of 51 changed hosts failed, more than the default limit of 5 (10% of the changed hosts, from 1 to 10)',
      hint: 'Fix the cause and run the same command again',
    });
  });

  it('has the zones and canaries of its hosts, if others are up to date', async () => {
    const zones = new Map([
      ['h1', 'b'],
      ['h2', 'b'],
      ['h3', 'a'],
    ]);
    const hosts = [...zones.keys()].map((name) => ({ name, role: 'worker' as const, groups: [], nodeRegistration: {} }));
    const more = { hosts, zoneOf: ({ name }: { name: string }) => zones.get(name), targets: [{ address: 'h2' }, { address: 'h3' }] };
    const rules: RulesRequest = { ...RULES, order: 'zone', canaryHosts: ['h1'] };
    expect((await runOver(3, { fails: [], rules, more })).applied).toEqual(['h3', 'h2']);
    expect((await runOver(3, { fails: ['h3'], rules, more })).applied).toEqual(['h3']);
  });

  it('names --max-fail if the command has the option', async () => {
    const { applied, shown, failure } = await runOver(4, { fails: ['h1', 'h2'], rules: { ...RULES, maxUnavailable: { hosts: 1 } } });
    expect(applied).toEqual(['h1', 'h2']);
    expect(shown).toEqual([]);
    expect(failure?.problems.at(-1)?.hint).toBe('Fix the cause and run the same command again, or allow more failures with --max-fail');
  });

  it('changes the remaining hosts with a higher limit', async () => {
    const { applied, failure } = await runOver(4, {
      fails: ['h1', 'h2'],
      rules: { ...RULES, maxUnavailable: { hosts: 1 }, maxFail: { percent: 100 } },
    });
    expect(applied).toEqual(['h1', 'h2', 'h3', 'h4']);
    expect(failure?.problems.map(({ code }) => code)).toEqual(['KUBELET_UNHEALTHY', 'KUBELET_UNHEALTHY']);
  });

  it('changes no other host after a failed canary', async () => {
    const { applied, failure } = await runOver(3, { fails: ['h1'], rules: { ...RULES, canary: { hosts: 1 } } });
    expect(applied).toEqual(['h1']);
    expect(failure?.problems.at(-1)?.message).toBe(
      'the run stopped before it processed 2 hosts: the first host to be changed (canary) failed',
    );
  });

  it('changes no host if preflight refuses one, and names all refused hosts', async () => {
    const { applied, outcomes, failure } = await runOver(4, {
      fails: [],
      refuses: ['h2', 'h4'],
      rules: { ...RULES, maxUnavailable: { hosts: 1 } },
    });
    expect(applied).toEqual([]);
    expect(outcomes.map(({ status }) => status)).toEqual(['not-started', 'refused', 'not-started', 'refused']);
    expect(failure?.exitCode).toBe(3);
    expect(failure?.problems).toMatchObject([
      { host: 'h2', code: 'PREFLIGHT' },
      { host: 'h4', code: 'PREFLIGHT' },
      { code: 'FLEET_STOPPED', message: 'the run stopped before it processed 2 hosts: 2 of 4 hosts were refused, and nothing was changed' },
    ]);
  });

  it.each([
    [1, ['h1', 'h3'], 4],
    [0, [], 3],
  ])('changes the hosts that are not refused as --max-fail %i permits', async (hosts, changed, exitCode) => {
    const { applied, failure } = await runOver(3, { fails: [], refuses: ['h2'], rules: { ...RULES, maxFail: { hosts } } });
    expect(applied).toEqual(changed);
    expect(failure?.exitCode).toBe(exitCode);
  });

  it.each([true, false])('waits after the change of a host that was down until its Node is Ready: %s', async (recovers) => {
    let reads = 0;
    const status = (isReady: boolean) => ({ conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] });
    const get = async () => ({ kind: 'Node', metadata: { name: 'n1' }, status: status(recovers && ++reads > 5) });
    const planHost: PlanOnHost = async ({ host: { name }, claim }) => {
      claim?.set(name, { nodeName: name, isProven: true, machineId: null });
      const change = { kind: 'restart-unit', unit: 'kubelet', reason: 'a test' } as const;
      const host: HostPlan = { name, phases: [{ phase: 'kubelet-start', plan: { changes: [change] } }] };
      const place = name === 'h1' ? { isDown: true } : { stage: 1 };
      return { host, warnings: [], refusals: [], ...place, apply: async () => host };
    };
    const more = { planHost, cluster: { get } as unknown as Cluster };
    const { outcomes } = await runOver(2, { fails: [], rules: { ...RULES, maxUnavailable: { hosts: 1 } }, more });
    expect(outcomes.map((one) => one.status)).toEqual(['changed', recovers ? 'changed' : 'not-started']);
  });

  it('plans each host again over the connection of its inspection', async () => {
    const { applied, connected } = await runOver(2, { fails: [], inspectsFirst: true, rules: { ...RULES, maxUnavailable: { hosts: 1 } } });
    expect(applied).toEqual(['h1', 'h2']);
    expect(connected).toEqual(['h1', 'h2']);
  });

  it('has at most 200 open connections, and connects again to the hosts beyond', async () => {
    const { applied, connected, open } = await runOver(300, { fails: [], inspectsFirst: true });
    expect(applied).toHaveLength(300);
    expect([open.now, open.most]).toEqual([0, 200]);
    // 150 connections are kept: 50 hosts may be processed at the same time.
    expect(connected).toHaveLength(300 + 150);
  });

  it('does not list hosts as results that an interruption left unchanged', async () => {
    const interruption = new AbortController();
    const { applied, shown, failure } = await runOver(
      3,
      { fails: [], rules: { ...RULES, maxUnavailable: { hosts: 1 } }, onApply: () => interruption.abort(interrupted('SIGINT')) },
      interruption.signal,
    );
    expect(applied).toEqual(['h1']);
    expect(shown).toEqual(['h1']);
    expect(failure).toMatchObject({ exitCode: 130, problems: [{ code: 'INTERRUPTED' }] });
  });
});
