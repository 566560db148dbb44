import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import type { Text } from '../../../../src/base/text/styled.ts';
import { hostsView } from '../../../../src/cli/hosts-view.ts';
import { type PageRequest, publishRun, type ReportPorts, type RunPage } from '../../../../src/cli/report/run-page.ts';
import type { ShownRun } from '../../../../src/cli/report/run-source.ts';
import { runRecorder } from '../../../../src/fleet/run/run-timeline.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { failedHost, plannedHost } from '../../../support/report-inputs.ts';

const REQUEST: PageRequest = { command: 'apply', subject: 'fleet.yaml', reason: 'OPS-1', report: 'report.html', serve: undefined };
const UNWRITABLE = new AppError({ code: 'INPUT_UNWRITABLE', message: 'cannot write report.html' }, { exitCode: 2 });
const FAILED = new AppError({ host: 'n1', code: 'KUBELET_UNHEALTHY', message: 'kubelet not healthy' }, { exitCode: 4 });
const PORTS = { signal: new AbortController().signal, reporterOf: () => ({ report: () => undefined }) };
const RUN: ShownRun = { command: 'apply', state: 'changing', hosts: [], canary: 0 };

/** Shows a recorded run on a page. */
function recorded(page: RunPage, clock: ReportPorts['clock'], run: Partial<ShownRun> = {}) {
  const recorder = runRecorder(clock);
  page.showRun(recorder, { ...RUN, ...run }, () => hostsView('apply fleet.yaml', recorder, clock.now().getTime()));
  return recorder.record(PORTS);
}

/** Ports that keep the written pages. */
function world({ isWritable = true, isFull = false } = {}) {
  const clock = fakeClock();
  const pages: string[] = [];
  const errors: Text[] = [];
  const ports: ReportPorts = {
    clock,
    output: { stdout: () => undefined, stderr: (text) => void errors.push(text), document: () => undefined },
    requireWritable: async () => {
      if (!isWritable) throw UNWRITABLE;
    },
    writeLocalFile: async (_, text) => {
      if (isFull) throw UNWRITABLE;
      pages.push(text);
    },
    templates: loadTemplates,
    commandLine: ['apply', '-f', 'fleet file.yaml', '--reason', 'OPS-1'],
    programName: 'kubeletadm',
    hostname: 'laptop',
    newId: async () => '0123456789abcdef',
    self: { name: 'alice@laptop', id: 1, machine: 'laptop', isRunning: () => true },
    serveLocal: async () => {
      throw new Error('no server was requested');
    },
  };
  return { ports, clock, pages, errors };
}

describe('the report of a run', () => {
  it('is refused before the run if its file cannot be written', async () => {
    const { ports } = world({ isWritable: false });
    let runs = 0;
    await expect(publishRun(ports, REQUEST, async () => ({ failure: null, runs: ++runs }))).rejects.toBe(UNWRITABLE);
    expect(runs).toBe(0);
  });

  it('is written when the run has ended, with its hosts and cluster', async () => {
    const { ports, clock, pages, errors } = world();
    const result = await publishRun(ports, { ...REQUEST, command: 'plan' }, async (page) => {
      await recorded(page, clock, { command: 'plan', state: 'planning' }).ended?.(plannedHost('n1'));
      page.useCluster({ server: 'https://10.0.0.1:6443' });
      expect(pages).toEqual([]);
      return { failure: null, exitCode: 6, isPending: true };
    });
    expect(result).toEqual({ failure: null, exitCode: 6, isPending: true });
    expect(pages).toHaveLength(1);
    expect(pages[0]).toContain('<title>kubeletadm plan: fleet.yaml</title>');
    expect(factsOf(pages[0])).toMatchObject({ Cluster: 'https://10.0.0.1:6443', 'Exit code': '6' });
    expect(pages[0]).toContain('1 of 1 host would be changed; highest impact: safe.');
    expect(pages[0]).toContain('<span class="old">110</span> → 200');
    expect(errors.join('')).toMatch(/^wrote report\.html \(\d+ kB\)\n$/);
  });

  it('has the hosts that had ended and the failure of a run that failed', async () => {
    const { ports, clock, pages } = world();
    const run = publishRun(ports, REQUEST, async (page) => {
      await recorded(page, clock).ended?.(failedHost('n0', 'unreachable', { code: 'HOST_UNREACHABLE', message: 'refused' }));
      throw FAILED;
    });
    await expect(run).rejects.toBe(FAILED);
    expect(pages[0]).toContain('<b>1</b> unreachable');
    expect(pages[0]).toContain('kubelet not healthy <code>[KUBELET_UNHEALTHY]</code>');
  });

  it('is not written if the command was wrong: an older report stays', async () => {
    const { ports, pages } = world();
    const wrong = new AppError({ code: 'USAGE', message: 'no such host' }, { exitCode: 2 });
    await expect(publishRun(ports, REQUEST, () => Promise.reject(wrong))).rejects.toBe(wrong);
    expect(pages).toEqual([]);
  });

  it('does not hide the failure of the run if the disk is full', async () => {
    const { ports, errors } = world({ isFull: true });
    expect(await publishRun(ports, REQUEST, async () => ({ failure: FAILED }))).toEqual({ failure: FAILED });
    expect(errors).toEqual(['warning: cannot write report.html [INPUT_UNWRITABLE]\n']);
    await expect(publishRun(ports, REQUEST, async () => ({ failure: null }))).rejects.toBe(UNWRITABLE);
  });
});

describe('the head of a report', () => {
  it('names who ran what, why and with which result', async () => {
    const { ports, clock, pages } = world();
    await publishRun(ports, REQUEST, async (page) => {
      await recorded(page, clock).ended?.({ ...plannedHost('n1'), status: 'changed' });
      page.usePlan({ id: 'plan-1', signer: 'bob@example.org, key SHA256:x' });
      return { failure: null };
    });
    expect(factsOf(pages[0])).toMatchObject({
      Operator: 'alice@laptop',
      Command: "kubeletadm apply -f 'fleet file.yaml' --reason OPS-1",
      Reason: 'OPS-1',
      Plan: 'plan-1',
      'Signed by': 'bob@example.org, key SHA256:x',
      'Exit code': '0',
    });
  });

  it('does not have the command of --notify, which may have the URL of a webhook', async () => {
    const { ports, pages } = world();
    for (const notify of [['--notify', 'curl https://hooks.example/SECRET'], ['--notify=curl https://hooks.example/SECRET']])
      await publishRun({ ...ports, commandLine: ['apply', ...notify, '--yes'] }, REQUEST, async () => ({ failure: null }));
    expect(pages.map((page) => factsOf(page).Command)).toEqual([
      "kubeletadm apply --notify '[command]' --yes",
      "kubeletadm apply '--notify=[command]' --yes",
    ]);
    expect(pages.join('')).not.toContain('SECRET');
  });

  it('leaves out the time in which the operator answered a question', async () => {
    const { ports, clock, pages } = world();
    await publishRun(ports, REQUEST, async (page) => {
      recorded(page, clock, { state: 'planning' });
      clock.advance(300_000);
      const run = recorded(page, clock);
      clock.advance(31_000);
      await run.ended?.({ ...plannedHost('n1'), status: 'changed' });
      return { failure: null };
    });
    expect(factsOf(pages[0])).toMatchObject({ Took: '31 s' });
  });
});

/** The facts below the verdict, by name. */
function factsOf(page = ''): Readonly<Record<string, string>> {
  const text = (html: string): string => html.replaceAll('&#x27;', "'").replaceAll('&#x3D;', '=');
  return Object.fromEntries(
    [...page.matchAll(/<dt>([^<]*)<\/dt><dd[^>]*>([^<]*)</g)].map(([, name = '', value = '']) => [name, text(value)]),
  );
}
