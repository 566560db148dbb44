import { describe, expect, it } from 'vitest';
import type { FieldChange } from '../../../../src/host/plan/impact.ts';
import type { NodeForecast } from '../../../../src/maintenance/forecast/forecast.ts';
import { certificate, changeEvents, failedHost, plannedHost, runModel, statusModel, statusRow } from '../../../support/report-inputs.ts';

const REFUSED = { code: 'HOST_UNREACHABLE', message: 'connection refused', hint: 'Check the network' } as const;

describe('the report of a run', () => {
  it('counts the hosts by result', () => {
    const { counts } = runModel([plannedHost('n2'), plannedHost('n1'), failedHost('n3', 'unreachable', REFUSED)]);
    expect(counts).toEqual([
      { value: 'pending', hosts: ['n1', 'n2'] },
      { value: 'unreachable', hosts: ['n3'] },
    ]);
  });

  it('has one row for hosts with equal fields, also if other changes differ', () => {
    const drain: FieldChange = { field: 'cpuManagerPolicy', before: 'none', after: 'static', impact: 'drain' };
    const raised: FieldChange = { field: 'maxPods', before: 110, after: 200, impact: 'safe' };
    const model = runModel([
      plannedHost('n1'),
      plannedHost('n2', { content: 'maxPods: 200\n# other\n' }),
      plannedHost('n3', { fields: [drain, raised] }),
      plannedHost('n4', { fields: [] }),
      plannedHost('n5', { status: 'unchanged' }),
    ]);
    expect(model.matrix.fields).toEqual(['cpuManagerPolicy', 'maxPods']);
    expect(model.matrix.rows.map(({ hosts, impact, changes }) => [hosts, impact, [...changes.keys()]])).toEqual([
      [['n1', 'n2'], 'safe', ['maxPods']],
      [['n3'], 'drain', ['cpuManagerPolicy', 'maxPods']],
    ]);
    expect(model.groups.map(({ hosts }) => hosts)).toEqual([['n1'], ['n2'], ['n3'], ['n4']]);
    expect(model.highestImpact).toBe('drain');
  });

  it('folds equal problems of several hosts, errors before warnings', () => {
    const { problems } = runModel([
      plannedHost('n1', { warning: 'an old field' }),
      plannedHost('n2', { warning: 'an old field' }),
      failedHost('n3', 'unreachable', REFUSED),
      failedHost('n4', 'unreachable', REFUSED),
    ]);
    expect(problems).toEqual([
      { severity: 'error', hosts: ['n3', 'n4'], problem: REFUSED },
      { severity: 'warning', hosts: ['n1', 'n2'], problem: { severity: 'warning', code: 'SOME_WARNING', message: 'an old field' } },
    ]);
  });

  it('lists first the nodes whose drain would be refused, once and with what frees them', () => {
    const drainOf = (node: string, isRefusal: boolean): NodeForecast => {
      const blocker = { kind: isRefusal ? 'deadlock' : 'budget', isRefusal, pods: ['shop/web-0'], budgets: ['shop/web'] } as const;
      const none = { daemonSet: [], mirror: [], finished: [], bare: [], emptyDir: [], hostPath: [], longGrace: [], unplaced: [] };
      return {
        ...{ node, state: isRefusal ? 'blocked' : 'waits', evictable: ['shop/web-0'], ...none },
        blockers: [{ ...blocker, why: 'PodDisruptionBudget shop/web never allows an eviction', fix: 'Scale up the Deployment' }],
      };
    };
    const { problems } = runModel([
      failedHost('n1', 'unreachable', REFUSED),
      plannedHost('n2', { warning: 'an old field', drain: drainOf('node-2', false) }),
      plannedHost('n3', { drain: drainOf('node-3', true) }),
    ]);
    expect(problems.map(({ hosts, problem: { code, message, hint } }) => [hosts, code, message, hint])).toEqual([
      [
        ['n3'],
        'DRAIN_FORECAST',
        'Node node-3: cannot drain: PodDisruptionBudget shop/web never allows an eviction: shop/web-0',
        'Scale up the Deployment',
      ],
      [['n1'], 'HOST_UNREACHABLE', 'connection refused', 'Check the network'],
      [['n2'], 'SOME_WARNING', 'an old field', undefined],
      [['n2'], 'DRAIN_FORECAST', expect.stringContaining('Node node-2: 1 pod to evict; will wait'), undefined],
    ]);
  });

  it('lists refused drains of a run before other errors', () => {
    const blocked = { code: 'DRAIN_BLOCKED', message: 'cannot drain: PodDisruptionBudget shop/web never allows an eviction' };
    const { problems } = runModel([failedHost('n1', 'unreachable', REFUSED), failedHost('n2', 'refused', blocked)]);
    expect(problems.map(({ hosts, problem: { code } }) => [hosts, code])).toEqual([
      [['n2'], 'DRAIN_BLOCKED'],
      [['n1'], 'HOST_UNREACHABLE'],
    ]);
  });

  it('has a timeline only if hosts were applied', () => {
    expect(runModel([plannedHost('n1')]).timeline).toBeNull();
    const { timeline } = runModel([plannedHost('n1', { status: 'changed' })], changeEvents('n1', 500, 4_000));
    expect(timeline).toMatchObject({ totalMs: 4_000, hosts: [{ host: 'n1', confirmedMs: 3_900, isCanary: true }] });
  });
});

describe('the report of fleet status', () => {
  it('groups hosts by each value, the most frequent value first', () => {
    const { census, counts } = statusModel([
      statusRow('n1', { config: 'aaa' }),
      statusRow('n10', { config: 'bbb' }),
      statusRow('n2', { config: 'bbb', kubelet: 'v1.35.4' }),
      statusRow('n3', { reachable: false, config: null, kubelet: null }),
    ]);
    expect([census[5], census[0]]).toEqual([
      {
        title: 'Configuration (SHA-256 of config.yaml)',
        entries: [
          { value: 'bbb', hosts: ['n2', 'n10'] },
          { value: 'aaa', hosts: ['n1'] },
          { value: 'unknown', hosts: ['n3'] },
        ],
      },
      {
        title: 'Kubelet version',
        entries: [
          { value: 'v1.36.2', hosts: ['n1', 'n10'] },
          { value: 'v1.35.4', hosts: ['n2'] },
          { value: 'unknown', hosts: ['n3'] },
        ],
      },
    ]);
    expect(counts).toEqual([
      { value: 'reachable', hosts: ['n1', 'n2', 'n10'] },
      { value: 'unreachable', hosts: ['n3'] },
    ]);
  });

  it('sorts certificates by expiration; those that cannot be read come first', () => {
    const { certificates } = statusModel([], [certificate('n1', 90), certificate('n2', -1), certificate('n3', 0, { notAfter: null })]);
    expect(certificates.map(({ host }) => host)).toEqual(['n3', 'n2', 'n1']);
  });
});

describe('the problems of fleet status', () => {
  const model = statusModel(
    [
      statusRow('n1', { node: 'NotReady', health: 'healthz 500' }),
      statusRow('n2', { node: 'NotReady', drift: '2 changes' }),
      statusRow('n3', { node: 'none', drift: 'not joined', nodeName: null }),
      statusRow('n4'),
    ],
    [certificate('n1', -2, { state: 'error', notes: ['expired'] }), certificate('n2', 5), certificate('n4', 5), certificate('n4', 90)],
  );

  it('are one row for hosts with the same state, errors before warnings', () => {
    expect(model.problems.map(({ severity, hosts, problem }) => [severity, hosts.join(), problem.message])).toEqual([
      ['error', 'n1,n2', 'the Node is NotReady'],
      ['error', 'n1', 'the kubelet is not healthy: healthz 500'],
      ['error', 'n1', 'the certificate client has expired'],
      ['warning', 'n2', 'drift from the fleet file: 2 changes'],
      ['warning', 'n3', 'the cluster has no Node of this host'],
      ['warning', 'n2,n4', 'the certificate client expires within 30 days'],
    ]);
  });

  it('are summed up in one sentence', () => {
    expect(model.verdict).toEqual({
      level: 'error',
      text: '4 hosts: 2 Nodes NotReady, 1 kubelet not healthy, 1 certificate expired or not valid, 1 host not joined, 2 certificates expire within 30 days, 2 hosts differ from the fleet file.',
    });
    expect(statusModel([statusRow('n1'), statusRow('n2')], [certificate('n1', 90)]).verdict).toEqual({
      level: 'ok',
      text: '2 hosts: all reachable, Ready and as the fleet file declares.',
    });
    expect(statusModel([statusRow('n1', { drift: '1 change' })]).verdict.level).toBe('warning');
    expect(statusModel([statusRow('n1', { reachable: false, node: null })]).verdict).toEqual({
      level: 'error',
      text: '1 host: 1 host unreachable.',
    });
  });

  it('are not absent where a state is unknown', () => {
    const unknown = { node: null, drift: null };
    expect(statusModel([statusRow('n1', unknown), statusRow('n2', unknown)]).verdict).toEqual({
      level: 'warning',
      text: '2 hosts: 2 Nodes unknown, 2 hosts not compared with the fleet file.',
    });
  });
});
