import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import type { Text } from '../../../../src/base/text/styled.ts';
import { type ReportPorts, reportRun, reportStatus } from '../../../../src/cli/report/report-file.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { certificate, failedHost, plannedHost, statusRow } from '../../../support/report-inputs.ts';

const REQUEST = { file: 'report.html', subject: 'fleet.yaml' };
const UNWRITABLE = new AppError({ code: 'INPUT_UNWRITABLE', message: 'cannot write report.html' }, { exitCode: 2 });
const FAILED = new AppError({ host: 'n1', code: 'KUBELET_UNHEALTHY', message: 'kubelet not healthy' }, { exitCode: 4 });
const PORTS = { signal: new AbortController().signal, reporterOf: () => ({ report: () => undefined }) };

/** Ports that keep the written pages. */
function world({ isWritable = true, isFull = false } = {}) {
  const pages: string[] = [];
  const errors: Text[] = [];
  const ports: ReportPorts = {
    clock: fakeClock(),
    output: { stdout: () => undefined, stderr: (text) => void errors.push(text), document: () => undefined },
    requireWritable: async () => {
      if (!isWritable) throw UNWRITABLE;
    },
    writeLocalFile: async (_, text) => {
      if (isFull) throw UNWRITABLE;
      pages.push(text);
    },
    templates: loadTemplates,
  };
  return { ports, pages, errors };
}

describe('the report of a run', () => {
  it('is refused before the run if its file cannot be written', async () => {
    const { ports } = world({ isWritable: false });
    let runs = 0;
    await expect(reportRun(ports, 'apply', REQUEST, async () => ({ failure: null, runs: ++runs }))).rejects.toBe(UNWRITABLE);
    expect(runs).toBe(0);
  });

  it('is written when the run has ended, with its hosts and cluster', async () => {
    const { ports, pages, errors } = world();
    const result = await reportRun(ports, 'plan', REQUEST, async (report) => {
      await report.record(PORTS).ended?.(plannedHost('n1'));
      report.useCluster({ server: 'https://10.0.0.1:6443' });
      expect(pages).toEqual([]);
      return { failure: null, isPending: true };
    });
    expect(result).toEqual({ failure: null, isPending: true });
    expect(pages).toHaveLength(1);
    expect(pages[0]).toContain('<title>kubeletadm plan: fleet.yaml</title>');
    expect(pages[0]).toContain('Cluster: https://10.0.0.1:6443');
    expect(pages[0]).toContain('<span class="old">110</span> → 200');
    expect(errors.join('')).toMatch(/^wrote report\.html \(\d+ kB\)\n$/);
  });

  it('has the hosts that had ended and the failure of a run that failed', async () => {
    const { ports, pages } = world();
    const run = reportRun(ports, 'apply', REQUEST, async (report) => {
      await report.record(PORTS).ended?.(failedHost('n0', 'unreachable', { code: 'HOST_UNREACHABLE', message: 'refused' }));
      throw FAILED;
    });
    await expect(run).rejects.toBe(FAILED);
    expect(pages[0]).toContain('<b>1</b> unreachable');
    expect(pages[0]).toContain('kubelet not healthy <code>[KUBELET_UNHEALTHY]</code>');
  });

  it('is not written if the command was wrong: an older report stays', async () => {
    const { ports, pages } = world();
    const wrong = new AppError({ code: 'USAGE', message: 'no such host' }, { exitCode: 2 });
    await expect(reportRun(ports, 'plan', REQUEST, () => Promise.reject(wrong))).rejects.toBe(wrong);
    expect(pages).toEqual([]);
  });

  it('does not hide the failure of the run if the disk is full', async () => {
    const { ports, errors } = world({ isFull: true });
    expect(await reportRun(ports, 'apply', REQUEST, async () => ({ failure: FAILED }))).toEqual({ failure: FAILED });
    expect(errors).toEqual(['warning: cannot write report.html [INPUT_UNWRITABLE]\n']);
    await expect(reportRun(ports, 'apply', REQUEST, async () => ({ failure: null }))).rejects.toBe(UNWRITABLE);
  });
});

describe('the report of fleet status', () => {
  it('has the hosts and their certificates', async () => {
    const { ports, pages } = world();
    await reportStatus(ports, REQUEST, async () => ({ rows: [statusRow('n1')], certificates: [certificate('n1', 90)], failure: null }));
    expect(pages[0]).toContain('<th scope="row">n1</th><td>yes</td><td>v1.36.2</td>');
    expect(pages[0]).toContain('1 certificates of 1 host;');
  });

  it('has the failure if no host could be read', async () => {
    const { ports, pages } = world();
    await expect(reportStatus(ports, REQUEST, () => Promise.reject(FAILED))).rejects.toBe(FAILED);
    expect(pages[0]).toContain('[KUBELET_UNHEALTHY]');
  });
});
