import { describe, expect, it } from 'vitest';
import { hostsView } from '../../../../src/cli/hosts-view.ts';
import { renderParts } from '../../../../src/cli/report/render-report.ts';
import { runSource } from '../../../../src/cli/report/run-source.ts';
import type { HostStatus } from '../../../../src/fleet/run/fleet.ts';
import { type RunRecord, runRecorder } from '../../../../src/fleet/run/run-timeline.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { failedHost, plannedHost } from '../../../support/report-inputs.ts';

const TEMPLATES = await loadTemplates();
const STOPPED = 'the first host to be changed (canary) failed';
const FACTS = { operator: 'alice@laptop', commandLine: null, reason: null, plan: null, signer: null, exitCode: null };

/** A run over planned hosts that stops when n1 does not succeed: n1 is the canary, and its change has begun. */
async function startedRun({ hosts = ['n1', 'n2', 'n3'], changing = ['n1'], earlier = undefined as RunRecord['plans'] | undefined } = {}) {
  const clock = fakeClock();
  const record = runRecorder(clock);
  const ports = record.record({ signal: new AbortController().signal, reporterOf: () => ({ report: () => undefined }) });
  const ended: Partial<Record<HostStatus, number>> = {};
  const progress = (): void =>
    ports.progress?.({
      ...{
        total: hosts.length,
        looking: [],
        waiting: hosts.length - changing.length,
        changing: changing.filter((host) => !isEnded.has(host)),
      },
      ...{ ended, isCanary: true, maxConcurrent: 1 },
      next: (rollingBack) =>
        rollingBack.has('n1') || isEnded.has('n1') ? { names: [], stopped: STOPPED } : { names: ['n2'], stopped: null },
    });
  const isEnded = new Set<string>();
  for (const host of changing) await ports.begins?.(host);
  progress();
  const run = { command: 'apply', state: 'changing', hosts, canary: 1 } as const;
  const source = runSource(record, run, () => hostsView('apply', record, clock.now().getTime()), earlier);
  return {
    ports,
    clock,
    reports: (host: string, code: string, data = {}): void => {
      clock.advance(1_000);
      ports.reporterOf(host).report({ level: 'warning', code, host, message: 'a test', data });
      clock.advance(1_000);
    },
    ends: async (host: string, status: 'rolled-back' | 'unreachable'): Promise<void> => {
      ended[status] = (ended[status] ?? 0) + 1;
      isEnded.add(host);
      await ports.ended?.(failedHost(host, status, { code: 'KUBELET_UNHEALTHY', message: 'kubelet not healthy' }));
      progress();
    },
    page: () => {
      const head = { subject: 'fleet.yaml', cluster: null, facts: FACTS, failure: null, startedAt: source.startedAt, endedAt: clock.now() };
      const { title, parts } = renderParts(source.model(head), TEMPLATES, '0.1.0', source.live());
      const text = (part: string): string =>
        (parts[part] ?? '')
          .replace(/<[^>]*>/g, ' ')
          .replace(/\s+/g, ' ')
          .trim();
      return { title, head: text('head'), now: text('progress'), matrix: text('matrix'), groups: text('groups'), html: parts };
    },
  };
}

describe('the live page of a run', () => {
  it('names the next hosts while the canary is in progress', async () => {
    const { page } = await startedRun();
    expect(page().head).toMatch(/▸ In progress: 0 of 3 hosts done\./);
    expect(page().now).toContain('canary: the others wait for its result 2 not started next, if those in progress succeed: n2');
  });

  it('is red, and announces no other host, as soon as the canary rolls back', async () => {
    const { page, reports } = await startedRun();
    reports('n1', 'ROLLBACK_STARTED', { cause: 'kubelet-start: kubelet not healthy' });
    reports('n1', 'WAITING');
    const { title, head, now, html } = page();
    expect(title).toBe('✗ 0/3 kubeletadm apply: fleet.yaml');
    expect(head).toMatch(/✗ Stopping: 0 of 3 hosts done, 1 rolling back\. 3 hosts ↩ 1 rolling back · 2 not started yet/);
    expect(html.head).toContain('class="verdict error"');
    expect(now).toContain(`no other host is started: ${STOPPED} 2 not started`);
    expect(now).not.toMatch(/next|wait for its result/);
    expect(html.progress).toContain('<span class="tag error">rolling back: kubelet-start: kubelet not healthy</span>');
  });

  it('stays red when the canary has failed', async () => {
    const { page, ends } = await startedRun({ changing: ['n1', 'n2'] });
    await ends('n1', 'rolled-back');
    // The worst first.
    expect(page().head).toMatch(
      /✗ Stopping: 1 of 3 hosts done, 1 rolled back\. 3 hosts ↩ 1 rolled back ▸ 1 in progress · 1 not started yet/,
    );
    expect(page().now).not.toMatch(/next|wait for its result/);
  });

  it('is only a warning if no change has failed', async () => {
    const { page, ends } = await startedRun();
    await ends('n3', 'unreachable');
    expect(page().head).toMatch(/! In progress: 1 of 3 hosts done, 1 unreachable\./);
  });

  it('lists a host that rolls back before 1,000 others', async () => {
    const hosts = Array.from({ length: 1_000 }, (_, i) => `n${i}`);
    const { page, reports } = await startedRun({ hosts, changing: hosts });
    reports('n999', 'ROLLBACK_STARTED');
    expect(page().now).toMatch(/In progress Step Since n999 rolling back 1\.0 s n\[0:998\] starting/);
  });

  it('has the changes of hosts as soon as they are planned, with the highest impact', async () => {
    const drain = { field: 'cpuManagerPolicy', before: 'none', after: 'static', impact: 'drain' } as const;
    const [raised, static_] = [plannedHost('n1'), plannedHost('n2', { fields: [drain] })];
    const earlier = new Map([['n2', static_.plan?.host ?? { name: '', phases: [] }]]);
    const { page, ports, ends } = await startedRun({ earlier });
    ports.planned?.('n1', raised.plan?.host ?? { name: '', phases: [] });
    expect(page().head).toContain('highest impact drain');
    expect(page().matrix).toContain('n1 1 host in progress');
    expect(page().matrix).toContain('n2 1 host not changed yet');
    await ends('n1', 'rolled-back');
    expect(page().groups).toContain('n1 1 host, 1 change safe rolled back');
  });
});
