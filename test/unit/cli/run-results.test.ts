import { describe, expect, it } from 'vitest';
import { AppError, formatProblem, type Problem } from '../../../src/base/errors.ts';
import { renderText, type Text } from '../../../src/base/text/styled.ts';
import { foldProblems } from '../../../src/cli/output/fold-problems.ts';
import { textReporter } from '../../../src/cli/output/reporter-text.ts';
import { showRecap } from '../../../src/cli/recap.ts';
import { runResults } from '../../../src/cli/run-results.ts';
import type { HostOutcome, HostStatus } from '../../../src/fleet/run/fleet.ts';
import { problemsOf } from '../../../src/fleet/run/fleet-failure.ts';
import type { HostSteps } from '../../../src/fleet/run/run-steps.ts';
import { planStale } from '../../../src/host/apply-phases.ts';
import type { HostChange } from '../../../src/host/plan/change.ts';

const RESTART: HostChange = { kind: 'restart-unit', unit: 'kubelet', reason: 'a test' };

function maxPods(after: number): HostChange {
  return {
    kind: 'write-file',
    path: '/var/lib/kubelet/config.yaml',
    mode: 0o644,
    owner: 'root:root',
    content: '',
    before: null,
    action: 'update',
    reason: 'a test',
    fields: [{ field: 'maxPods', before: 70, after, impact: 'new-pods-only' }],
  };
}

function outcome(host: string, status: HostStatus, changes: readonly HostChange[] = []): HostOutcome {
  const plan = { host: { name: host, phases: [{ phase: 'kubelet-start', plan: { changes } }] }, warnings: [], refusals: [] };
  const problem = { code: 'HOST_UNREACHABLE', message: `cannot reach ${host}:22: connection refused`, hint: 'Check the address' };
  const isFailed = status === 'unreachable' || status === 'rolled-back';
  return { host, status, plan: status === 'unreachable' ? null : plan, error: isFailed ? new AppError(problem) : null };
}

function stepsOf(host: string, ms: number): HostSteps {
  const steps = [
    { name: 'inspect', startedAt: 0, endedAt: 500 },
    { name: 'kubelet-start', startedAt: 500, endedAt: 500 + ms },
  ];
  const ended = { endedAt: 500 + ms, status: 'changed', confirmedAt: 500 + ms } as const;
  return { host, startedAt: 0, beganAt: 500, ...ended, steps, phases: [], activity: null, revertsAt: null };
}

function printed(total: number, folds: boolean, width?: number) {
  let text = '';
  const reporter = textReporter(
    {
      stderr: (more) =>
        (text += typeof more === 'string' ? more : more.map((part) => (typeof part === 'string' ? part : part.text)).join('')),
      ...(width === undefined ? {} : { width: () => width }),
    },
    0,
  );
  return { results: runResults(reporter, { total, folds }), lines: () => text.split('\n').slice(0, -1) };
}

describe('the results of hosts', () => {
  it('are one line for each host without a terminal, as soon as it has ended', () => {
    const { results, lines } = printed(3, false);
    results.ended(outcome('n1', 'changed', [maxPods(72), RESTART]), stepsOf('n1', 4_100));
    expect(lines()).toEqual(['n1 changed: config.yaml maxPods 70 → 72, kubelet restarted, confirmed (4.1s)']);
    results.ended(outcome('n2', 'unchanged'), stepsOf('n2', 10));
    // The recap and the errors name them.
    results.ended(outcome('n3', 'unreachable'), undefined);
    results.ended(outcome('n4', 'not-started'), undefined);
    expect(lines().slice(1)).toEqual(['n2 up to date']);
  });

  it('are 200 lines for 200 hosts without a terminal', () => {
    const { results, lines } = printed(200, false);
    for (let i = 1; i <= 200; i++) results.ended(outcome(`n${i}`, 'changed', [maxPods(72)]), stepsOf(`n${i}`, 1_000));
    results.close();
    expect(lines()).toHaveLength(200);
  });

  it('share lines on a terminal: 200 changed hosts print at most 60', () => {
    const { results, lines } = printed(200, true);
    for (let i = 1; i <= 200; i++) results.ended(outcome(`n${i}`, 'changed', [maxPods(72), RESTART]), stepsOf(`n${i}`, 1_000 + i));
    results.close();
    expect(lines()).toHaveLength(20);
    expect(lines()[0]).toBe('n[1:10] (10 hosts) changed: config.yaml maxPods 70 → 72, kubelet restarted, confirmed (1.0s)');
  });

  it('are at most 60 lines on a terminal for 200 hosts that all change in other ways', () => {
    const { results, lines } = printed(200, true);
    for (let i = 1; i <= 200; i++) results.ended(outcome(`n${i}`, 'changed', [maxPods(100 + i)]), stepsOf(`n${i}`, 1_000));
    results.close();
    expect(lines()).toHaveLength(41);
    expect(lines().at(-1)).toBe('n[41:200] (160 hosts) changed in other ways; -v 1 prints the changes of each host (1.0s)');
  });

  it('appear immediately on a terminal if the run is small', () => {
    const { results, lines } = printed(3, true);
    results.ended(outcome('n1', 'changed', [maxPods(72)]), stepsOf('n1', 1_000));
    expect(lines()).toHaveLength(1);
    // The live display and the recap show it.
    results.ended(outcome('n2', 'unreachable'), undefined);
    results.close();
    expect(lines()).toHaveLength(1);
  });

  it('are wrapped at spaces on a terminal', () => {
    const { results, lines } = printed(1, true, 46);
    results.ended(outcome('n1', 'changed', [maxPods(72), RESTART]), stepsOf('n1', 4_100));
    results.close();
    expect(lines()).toEqual(['n1 changed: config.yaml maxPods 70 → 72,', '  kubelet restarted, confirmed (4.1s)']);
  });

  it('name the phases of an unchanged host that are deferred', () => {
    const { results, lines } = printed(1, false);
    const host = { name: 'n1', phases: [{ phase: 'kubelet-start', plan: { changes: [], deferred: 'at boot' } }] };
    results.ended({ ...outcome('n1', 'unchanged'), plan: { host, warnings: [], refusals: [] } }, undefined);
    expect(lines()).toEqual(['n1 unchanged: kubelet-start deferred']);
  });

  it('say what was seen of a Node that has joined', () => {
    const { results, lines } = printed(1, false);
    const waited = { phase: 'kubelet-wait-bootstrap/node', plan: { changes: [RESTART], noop: 'Node n1 is Ready' } };
    results.ended({ ...outcome('n1', 'changed'), plan: { host: { name: 'n1', phases: [waited] }, warnings: [], refusals: [] } }, undefined);
    expect(lines()).toEqual(['n1 changed: kubelet restarted, Node is Ready']);
  });

  it('summarise long lists', () => {
    const { results, lines } = printed(1, false);
    const { fields: _, ...file } = maxPods(1) as Extract<HostChange, { kind: 'write-file' }>;
    const created = ['a', 'b', 'c', 'd'].map((name) => ({ ...file, action: 'create' as const, path: `/etc/${name}` }));
    const many = ['a', 'b', 'c', 'd', 'e'].map((field) => ({ field, before: null, after: 'x'.repeat(50), impact: 'safe' as const }));
    results.ended(outcome('n1', 'changed', [...created, file, { ...file, path: '/etc/f', fields: many }]), undefined);
    const value = `${'x'.repeat(29)}…`;
    expect(lines()).toEqual([
      `n1 changed: f a unset → ${value}, b unset → ${value}, c unset → ${value}, 2 more fields, updated config.yaml, created 4 files`,
    ]);
  });
});

describe('the recap', () => {
  const shown = (outcomes: readonly HostOutcome[]): string => {
    let text = '';
    const write = (more: Text): void => {
      text += renderText(more, false);
    };
    const retryCommand = 'kubeletadm apply -f fleet.yaml --retry failed';
    showRecap({ output: { stdout: write, stderr: write, document: write } }, { outcomes, retryCommand, elapsedMs: 7_000, gates: [] });
    return text;
  };

  it('has no line for hosts that changed or are up to date', () => {
    const outcomes = [outcome('n1', 'changed'), outcome('n2', 'unchanged'), outcome('n3', 'pending')];
    expect(shown(outcomes)).toBe('3 hosts: 1 pending, 1 changed, 1 unchanged.\ntook 7s\n');
  });

  it('has the other hosts by result, and one way to continue', () => {
    const stopped = Array.from({ length: 100 }, (_, i) => outcome(`n${i + 3}`, 'not-started'));
    expect(shown([outcome('n1', 'unreachable'), outcome('n2', 'unreachable'), ...stopped])).toBe(`unreachable: n1, n2
not started: n[3:102] (100 hosts)
102 hosts: 2 unreachable, 100 not started.
took 7s; to continue: kubeletadm apply -f fleet.yaml --retry failed
`);
  });

  it('does not say that hosts continue whose causes must be fixed first', () => {
    const stopped = outcome('n2', 'not-started');
    expect(shown([outcome('n1', 'rolled-back'), stopped])).toContain(
      'took 7s; fix the causes, then run: kubeletadm apply -f fleet.yaml --retry failed\n',
    );
  });

  it.each([
    ['a saved plan, which --replan replaces', 'saved', ' --replan'],
    ['an approved plan, as each run makes a new one', 'approved', ''],
  ] as const)('continues after the change of a host since %s', (_, plan, option) => {
    const stale = { ...outcome('n1', 'refused'), error: planStale('n1', plan, { message: 'the host changed', exitCode: 3 }) };
    const command = `kubeletadm apply -f fleet.yaml --retry failed${option}\n`;
    expect(shown([stale, outcome('n2', 'not-started')])).toContain(`took 7s; to continue: ${command}`);
    expect(shown([stale, outcome('n2', 'refused')])).toContain(`took 7s; fix the causes, then run: ${command}`);
  });

  it('and the errors of 40 hosts with one cause have at most 6 lines', () => {
    const hosts = Array.from({ length: 40 }, (_, i) => outcome(`n${i + 1}`, 'unreachable'));
    const errors = foldProblems(problemsOf(hosts)).map(formatProblem);
    expect(errors).toEqual(['n[1:40] (40): cannot reach the host: connection refused. Check the address. [HOST_UNREACHABLE]']);
    expect(shown(hosts).trimEnd().split('\n').length + errors.length).toBeLessThanOrEqual(6);
  });
});

describe('problems of many hosts', () => {
  const problem = (host: string, message: string, more: Partial<Problem> = {}): Problem => ({ code: 'X', host, message, ...more });

  it('share a line if only the name of the own host differs', () => {
    const problems = [problem('n1', 'n1 is locked', { hint: 'Run x n1' }), problem('n2', 'n2 is locked', { hint: 'Run x n2' })];
    expect(foldProblems(problems).map(formatProblem)).toEqual(['n1, n2 (2): <host> is locked. Run x <host>. [X]']);
    const refused = ['n1', 'n2'].map((host, i) => ({
      host,
      code: 'HOST_AUTH_FAILED',
      message: `10.0.0.${i}:22 rejected user root: tried key k`,
    }));
    expect(foldProblems(refused).map(formatProblem)).toEqual(['n1, n2 (2): the host rejected user root: tried key k [HOST_AUTH_FAILED]']);
  });

  it('keep their lines if the message, the position or the hint differs, and the text of a single one', () => {
    const position = { file: 'fleet.yaml', line: 1, column: 1 };
    const problems = [problem('n1', 'n1 a'), problem('n2', 'b'), problem('n3', 'b', { position }), problem('n4', 'b', { hint: 'c' })];
    expect(foldProblems(problems)).toEqual(problems);
  });
});
