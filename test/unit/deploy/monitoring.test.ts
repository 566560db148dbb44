import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import * as z from 'zod';
import { NO_COUNTERS } from '../../../src/dynamic/agent/agent-counters.ts';
import { renderAgentMetrics } from '../../../src/dynamic/agent/http-endpoints.ts';
import { newAgentState } from '../../../src/dynamic/agent/state.ts';
import { ControllerMetrics } from '../../../src/rollouts/controller/metrics.ts';
import { requirement } from '../../support/requirement.ts';
import { REPOSITORY } from '../../support/source-files.ts';

const FOLDER = join(REPOSITORY, 'deploy/monitoring');
const RULES = join(FOLDER, 'alerts.yaml');

const rule = z.strictObject({
  alert: z.string().regex(/^[A-Z]\w+$/),
  expr: z.string(),
  for: z
    .string()
    .regex(/^\d+[smh]$/)
    .optional(),
  labels: z.strictObject({ severity: z.enum(['warning', 'critical']) }),
  annotations: z.strictObject({ summary: z.string(), description: z.string() }),
});
const rules = z.strictObject({ groups: z.array(z.strictObject({ name: z.string(), rules: z.array(rule).min(1) })) });
const dashboard = z.looseObject({
  panels: z.array(z.looseObject({ id: z.number(), title: z.string(), targets: z.array(z.looseObject({ expr: z.string() })).min(1) })),
  templating: z.looseObject({ list: z.array(z.looseObject({ name: z.string(), query: z.string() })) }),
});

async function exported(): Promise<string> {
  return renderAgentMetrics(newAgentState(0), NO_COUNTERS, {}) + (await new ControllerMetrics().text());
}

/** The metrics of an expression, without the suffixes of a histogram. */
function metricsOf(expr: string): readonly string[] {
  return (expr.match(/\bkubelet(?:adm)?_\w+/g) ?? []).map((name) => name.replace(/_(?:bucket|sum|count)$/, ''));
}

describe('the alert rules and the dashboard', () => {
  it('use only metrics that an agent or a controller exports', async () => {
    const types = await exported();
    const { groups } = rules.parse(parse(readFileSync(RULES, 'utf8')));
    const { panels, templating } = dashboard.parse(JSON.parse(readFileSync(join(FOLDER, 'grafana-dashboard.json'), 'utf8')));
    const expressions = [
      ...groups.flatMap((group) => group.rules.map(({ expr }) => expr)),
      ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
      ...templating.list.flatMap(({ name, query }) => (name === 'datasource' ? [] : [query])),
    ];
    expect(expressions.filter((expr) => metricsOf(expr).length === 0)).toEqual([]);
    const unknown = expressions.flatMap(metricsOf).filter((name) => !new RegExp(`^# TYPE ${name} `, 'm').test(types));
    expect(unknown).toEqual([]);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });

  it('use each metric', async () => {
    const used = ['alerts.yaml', 'grafana-dashboard.json'].flatMap((file) => metricsOf(readFileSync(join(FOLDER, file), 'utf8')));
    const names = [...(await exported()).matchAll(/^# TYPE (kubeletadm_\w+) /gm)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(9);
    expect(names.filter((name) => !used.includes(name))).toEqual([]);
  });
});

const promtool = spawnSync('promtool', ['--version'], { encoding: 'utf8' });
const missing = promtool.status === 0 ? null : 'promtool is not installed (Debian package prometheus)';

describe.skipIf(requirement('alert rules with promtool', missing))('promtool', () => {
  const run = (argv: readonly string[], input = ''): string => {
    const { status, stdout, stderr } = spawnSync('promtool', argv, { encoding: 'utf8', input });
    return status === 0 ? 'ok' : `${stdout}${stderr}`;
  };

  it('accepts the rules, and the metrics of agent and controller', async () => {
    expect(run(['check', 'rules', RULES])).toBe('ok');
    expect(run(['check', 'metrics'], renderAgentMetrics(newAgentState(0), NO_COUNTERS, { client: 1, serving: 2 }))).toBe('ok');
    const metrics = new ControllerMetrics();
    metrics.leads(true);
    metrics.reconciled(0.1);
    metrics.show([{ name: 'pods', status: { phase: 'Complete' } }]);
    expect(run(['check', 'metrics'], await metrics.text())).toBe('ok');
  });

  const leader = 'kubeletadm_controller_leader{instance="a"}';
  const phase = (is: string, reason: string) => `kubeletadm_rollout_phase{rollout="pods",phase="${is}",reason="${reason}"}`;
  const updated = 'kubeletadm_rollout_nodes{rollout="pods",state="Updated"}';
  /** Series with their values by minute; the alerts at a time, by their labels. */
  const cases: readonly (readonly [string, Readonly<Record<string, string>>, string, Readonly<Record<string, readonly object[]>>])[] = [
    ['no controller', {}, '5m', { KubeletadmControllerNoLeader: [{ severity: 'critical' }] }],
    ['no leader', { [leader]: '0x10' }, '5m', { KubeletadmControllerNoLeader: [{ severity: 'critical' }] }],
    ['a leader that changes', { [leader]: '1 1 1 0 0 0', 'kubeletadm_controller_leader{instance="b"}': '0 0 0 0 1 1' }, '5m', {}],
    [
      'a failed rollout',
      { [leader]: '1x10', [phase('Failed', 'GateFailed')]: '1x10' },
      '5m',
      { KubeletConfigRolloutFailed: [{ severity: 'warning', rollout: 'pods', phase: 'Failed', reason: 'GateFailed' }] },
    ],
    [
      'a rollout without progress',
      { [leader]: '1x180', [phase('Progressing', 'WaitingForNodes')]: '1x180', [updated]: '3x180' },
      '150m',
      { KubeletConfigRolloutStuck: [{ severity: 'warning', rollout: 'pods' }] },
    ],
    [
      'a rollout that waits for a window',
      { [leader]: '1x180', [phase('Progressing', 'OutsideWindow')]: '1x180', [updated]: '3x180' },
      '150m',
      {},
    ],
    ['a slow rollout', { [leader]: '1x180', [phase('Progressing', 'Progressing')]: '1x180', [updated]: '0+1x180' }, '150m', {}],
    [
      'requests that fail',
      { [leader]: '1x40', 'kubeletadm_api_errors_total{verb="get",code="CLUSTER_FORBIDDEN"}': '0+10x40' },
      '30m',
      { KubeletadmControllerApiErrors: [{ severity: 'warning', verb: 'get', code: 'CLUSTER_FORBIDDEN' }] },
    ],
    [
      'a CSR that is not approved',
      {
        [leader]: '1x60',
        'kubeletadm_serving_csrs_pending{instance="a"}': '1x60',
        'kubeletadm_serving_csrs_pending{instance="b"}': '0x60',
      },
      '45m',
      { KubeletServingCsrPending: [{ severity: 'warning' }] },
    ],
    ['conflicts', { [leader]: '1x40', 'kubeletadm_api_errors_total{verb="patch",code="CLUSTER_CONFLICT"}': '0+10x40' }, '30m', {}],
    [
      'slow decisions',
      {
        [leader]: '1x40',
        'kubeletadm_rollout_reconcile_duration_seconds_bucket{le="1"}': '0+1x40',
        'kubeletadm_rollout_reconcile_duration_seconds_bucket{le="2.5"}': '0+10x40',
        'kubeletadm_rollout_reconcile_duration_seconds_bucket{le="+Inf"}': '0+10x40',
      },
      '30m',
      { KubeletadmControllerSlow: [{ severity: 'warning' }] },
    ],
    [
      'a certificate that expires in six days, but not for one of eight days',
      {
        [leader]: '1x120',
        'kubeletadm_kubelet_certificate_expiration_timestamp_seconds{instance="n1",certificate="serving"}': `${6 * 86_400}x120`,
        'kubeletadm_kubelet_certificate_expiration_timestamp_seconds{instance="n1",certificate="client"}': `${8 * 86_400}x120`,
      },
      '90m',
      { KubeletCertificateExpires: [{ severity: 'warning', instance: 'n1', certificate: 'serving' }] },
    ],
    [
      'a rollback',
      {
        [leader]: '1x10',
        'kubeletadm_rollback_signal{instance="n1",signal="crash"}': '1x10',
        'kubelet_node_config_error{instance="n1"}': '1x10',
      },
      '5m',
      { KubeletConfigRolledBack: [{ severity: 'critical', instance: 'n1', signal: 'crash' }] },
    ],
  ];

  it.each(cases)('alerts for %s', (_, series, at, firing) => {
    const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-promtool-'));
    const { groups } = rules.parse(parse(readFileSync(RULES, 'utf8')));
    const annotations = new Map(groups.flatMap((group) => group.rules.map((one) => [one.alert, one.annotations] as const)));
    const filled = (text: string, labels: Readonly<Record<string, string>>): string =>
      text.replace(/\{\{ \$labels\.(\w+) \}\}/g, (__, label: string) => labels[label] ?? '');
    const tests = [...annotations].map(([alertname, texts]) => ({
      eval_time: at,
      alertname,
      exp_alerts: (firing[alertname] ?? []).map((labels) => ({
        exp_labels: labels,
        exp_annotations: Object.fromEntries(
          Object.entries(texts).map(([name, text]) => [name, filled(text, labels as Readonly<Record<string, string>>)]),
        ),
      })),
    }));
    const input_series = Object.entries(series).map(([name, values]) => ({ series: name, values }));
    const file = join(directory, 'test.yaml');
    writeFileSync(
      file,
      stringify({ rule_files: [RULES], evaluation_interval: '1m', tests: [{ interval: '1m', input_series, alert_rule_test: tests }] }),
    );
    expect(run(['test', 'rules', file])).toBe('ok');
    rmSync(directory, { recursive: true });
  });
});
