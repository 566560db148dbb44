import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/adapters/clock-system.ts';
import type { LocalServer } from '../../src/base/local-server.ts';
import { serveLocal } from '../../src/cli/adapters/http-local.ts';
import { hostsView } from '../../src/cli/hosts-view.ts';
import { type LivePagePorts, serveLivePage } from '../../src/cli/report/live-page.ts';
import { renderPage, renderParts, renderReport } from '../../src/cli/report/render-report.ts';
import { runSource } from '../../src/cli/report/run-source.ts';
import type { ReportModel } from '../../src/fleet/report/report-model.ts';
import { runRecorder } from '../../src/fleet/run/run-timeline.ts';
import { loadTemplates } from '../../src/template-files.ts';
import { findChromium, type HeadlessBrowser, LOWEST_CONTRAST, startBrowser } from '../support/headless-browser.ts';
import {
  certificate,
  changeEvents,
  failedHost,
  hostileModels,
  plannedHost,
  runModel,
  statusModel,
  statusRow,
} from '../support/report-inputs.ts';
import { requirement } from '../support/requirement.ts';

const chromium = findChromium();
const HOSTS = Array.from({ length: 1_000 }, (_, i) => `edge-${String(i).padStart(4, '0')}`);
const LARGE = {
  apply: runModel(
    HOSTS.map((host, i) => plannedHost(host, { status: i === 500 ? 'rolled-back' : 'changed', warning: 'an old field' })),
    HOSTS.flatMap((host, i) => changeEvents(host, 100, i % 100 === 7 ? 60_000 : 5_000, i === 500 ? 'rolled-back' : 'changed')),
    0,
  ),
  status: statusModel(
    HOSTS.map((host, i) => statusRow(host, i % 50 === 0 ? { health: 'healthz 500', node: 'NotReady', drift: '2 changes' } : {})),
    HOSTS.map((host, i) => certificate(host, (i % 300) - 3)),
  ),
} satisfies Record<string, ReportModel>;

describe.skipIf(requirement('reports in a browser', chromium === null ? 'requires chromium' : null))('a report in a browser', () => {
  let browser: HeadlessBrowser;
  const directory = mkdtempSync(join(tmpdir(), 'report-page-files-'));
  const save = async (model: ReportModel): Promise<string> => {
    const file = join(directory, 'report.html');
    writeFileSync(file, renderReport(model, await loadTemplates(), '0.1.0'));
    return file;
  };
  beforeAll(async () => {
    browser = await startBrowser(chromium as string);
  });
  afterAll(async () => {
    await browser.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it.each(['plan', 'apply', 'fleet status'].map((name, i) => [name, i] as const))('runs no code of names and texts: %s', async (_, i) => {
    await browser.open(await save(hostileModels()[i] as ReportModel), { width: 1_200, scheme: 'light' });
    await browser.evaluate("document.querySelectorAll('body *').forEach((element) => element.dispatchEvent(new MouseEvent('mouseover')))");
    expect(await browser.evaluate('window.injected ?? null')).toBeNull();
    expect(await browser.evaluate("document.querySelectorAll('img, body script').length")).toBe(1);
    // Its own script has run.
    expect(await browser.evaluate("document.getElementById('filter').hidden")).toBe(false);
  });

  it('forbids other code, if a value was not escaped', async () => {
    await browser.open(await save(runModel([plannedHost('n1')])), { width: 1_200, scheme: 'light' });
    const blocked = await browser.evaluate(`new Promise((resolve) => {
      const blocked = [];
      document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
        blocked.push(effectiveDirective);
        if (new Set(blocked).size === 4) resolve([...new Set(blocked)].sort());
      });
      const script = document.createElement('script');
      script.textContent = 'window.injected = 1';
      document.body.append(script);
      const block = document.createElement('div');
      block.innerHTML = '<img src="http://192.0.2.1/x" onerror="window.injected = 1"><p onclick="window.injected = 1" style="color: red">x</p>';
      document.body.append(block);
      block.querySelector('p').click();
    })`);
    expect(blocked).toEqual(['img-src', 'script-src-attr', 'script-src-elem', 'style-src-attr']);
    expect(await browser.evaluate('window.injected ?? null')).toBeNull();
  });

  it.each(
    Object.entries(LARGE).flatMap(([name, model]) =>
      [1_200, 600].flatMap((width) => (['light', 'dark'] as const).map((scheme) => [name, width, scheme, model] as const)),
    ),
  )('is readable with 1,000 hosts: %s, %i px, %s', async (_, width, scheme, model) => {
    await browser.open(await save(model), { width, scheme });
    expect(await browser.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    expect(await browser.evaluate(LOWEST_CONTRAST)).toMatchObject({ ratio: expect.toSatisfy((ratio: number) => ratio >= 4.5) });
  });

  it('filters 1,000 hosts, by keyboard', async () => {
    await browser.open(await save(LARGE.apply), { width: 1_200, scheme: 'light' });
    const press = (key: string): Promise<unknown> =>
      browser.evaluate(`document.dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true }))`);
    const shown = (): Promise<unknown> =>
      browser.evaluate(
        "[...document.querySelectorAll('.gantt tr[data-row]')].filter((row) => row.checkVisibility()).map((row) => row.cells[0].textContent)",
      );
    await press('/');
    expect(await browser.evaluate('document.activeElement.id')).toBe('filter-text');
    await browser.evaluate("document.activeElement.value = 'EDGE-0123'; document.getElementById('filter').requestSubmit()");
    expect(await shown()).toEqual(['edge-0123']);
    await press('Escape');
    expect(await shown()).toHaveLength(11);
  });

  it('has a cell for each of 1,000 hosts, one of which is reached with Tab, and moves between them with the arrow keys', async () => {
    await browser.open(await save(LARGE.apply), { width: 1_200, scheme: 'light' });
    expect(
      await browser.evaluate("[document.querySelectorAll('.cell').length, document.querySelectorAll('.cell[tabindex=\"0\"]').length]"),
    ).toEqual([1_000, 1]);
    const press = (key: string): Promise<unknown> =>
      browser.evaluate(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true }))`);
    const focused = (): Promise<unknown> => browser.evaluate("document.querySelector('.cell-text').textContent");
    await browser.evaluate('document.querySelector(\'.cell[tabindex="0"]\').focus()');
    expect(await focused()).toMatch(/^edge-0000: changed/);
    await press('ArrowRight');
    expect(await focused()).toMatch(/^edge-0001: changed/);
    await press('ArrowDown');
    expect(await focused()).toMatch(/^edge-00[2-9]\d: changed/);
    await press('End');
    expect(await focused()).toMatch(/^edge-0999: changed/);
    await browser.evaluate('document.activeElement.click()');
    expect(await browser.evaluate("document.getElementById('filter-text').value")).toBe('edge-0999');
    expect(await browser.evaluate("[...document.querySelectorAll('.cell')].filter((cell) => cell.checkVisibility()).length")).toBe(1);
  });
});

describe.skipIf(requirement('live pages in a browser', chromium === null ? 'requires chromium' : null))('a live page in a browser', () => {
  let browser: HeadlessBrowser;
  beforeAll(async () => {
    browser = await startBrowser(chromium as string);
  });
  afterAll(() => browser.close());

  /** Serves a run over 1,000 hosts with one canary; the returned function ends the hosts up to a number. */
  async function serveRun() {
    const [templates, clock] = [await loadTemplates(), systemClock];
    const recorder = runRecorder(clock);
    const ports = recorder.record({ signal: new AbortController().signal, reporterOf: () => ({ report: () => undefined }) });
    let done = 0;
    let isEnded = false;
    const failed = failedHost('edge-0002', 'rolled-back', { code: 'KUBELET_UNHEALTHY', message: 'kubelet not healthy' });
    const progress = (): void =>
      ports.progress?.({
        total: HOSTS.length,
        looking: [],
        waiting: HOSTS.length - done - 4,
        changing: HOSTS.slice(done, done + 4),
        ended: { changed: done },
        isCanary: done === 0,
        maxConcurrent: 4,
        next: () => ({ names: HOSTS.slice(done + 4, done + 8), stopped: null }),
      });
    const endUntil = async (count: number): Promise<void> => {
      for (; done < count; done++) {
        const host = HOSTS[done] as string;
        await ports.begins?.(host);
        await ports.ended?.(host === failed.host ? failed : plannedHost(host, { status: 'changed' }));
      }
      progress();
    };
    progress();
    const source = runSource(recorder, { command: 'apply', state: 'changing', hosts: HOSTS, canary: 1 }, () =>
      hostsView('apply', recorder, clock.now().getTime()),
    );
    const head = { subject: 'fleet.yaml', cluster: null, startedAt: source.startedAt, failure: null };
    const facts = { operator: 'alice@laptop', commandLine: 'kubeletadm apply', reason: null, plan: null, signer: null };
    const urls: string[] = [];
    let answer: Parameters<LivePagePorts['serveLocal']>[2] = () => null;
    let server: LocalServer | null = null;
    const listen = async (port: number): Promise<LocalServer> => {
      server = await serveLocal('127.0.0.1', port, (request) => answer(request));
      return server;
    };
    const page = await serveLivePage(
      {
        clock,
        hostname: 'laptop',
        newId: async () => '0123456789abcdef',
        output: { stdout: () => undefined, stderr: (text) => void urls.push(String(text)), document: () => undefined },
        serveLocal: async (_host, port, given) => {
          answer = given;
          const { port: used } = await listen(port);
          return { port: used, close: async () => server?.close() };
        },
      },
      { host: '127.0.0.1', port: 0 },
      {
        render: () => {
          const model = source.model({ ...head, facts: { ...facts, exitCode: isEnded ? 4 : null }, endedAt: clock.now() });
          return renderParts(model, templates, '0.1.0', isEnded ? null : source.live());
        },
        document: (rendered) => renderPage(rendered, templates, { isLive: true }),
      },
    );
    const url = /http:\S*/.exec(urls.join())?.[0] ?? '';
    return {
      url,
      endUntil,
      end: async () => {
        isEnded = true;
        await page.end();
      },
      /** Ends all connections, and listens again on the same port. */
      restart: async () => {
        await server?.close();
        await listen(Number(new URL(url).port));
      },
    };
  }

  const text = (selector: string): Promise<unknown> => browser.evaluate(`document.querySelector('${selector}')?.textContent ?? ''`);
  const waitFor = (selector: string, expected: RegExp): Promise<void> =>
    expect.poll(() => text(selector), { timeout: 15_000 }).toMatch(expected);
  const counts = (): Promise<unknown> =>
    browser.evaluate("[...document.querySelectorAll('.counts li')].map((item) => item.innerText.replace(/\\s+/g, ' ').trim())");

  it('follows a run over 1,000 hosts to its end, keeps the focus and the filter, and connects again', async () => {
    const run = await serveRun();
    await browser.open(run.url, { width: 1_200, scheme: 'dark' });
    await waitFor('#connection', /^Live/);
    expect(await text('.verdict')).toContain('In progress: 0 of 1000 hosts done.');
    expect(await text('#part-progress')).toContain('canary: the others wait for its result');
    expect(await text('#part-progress')).toContain('next, if those in progress succeed: edge-[0004:0007]');
    await browser.evaluate("document.querySelectorAll('.cell')[5].click()");
    await browser.evaluate("window.kept = document.querySelectorAll('.cell')[5]");
    await run.endUntil(10);
    await waitFor('.verdict', /10 of 1000 hosts done, 1 rolled back/);
    // Failures first.
    expect(await text('.problems tbody tr')).toContain('kubelet not healthy');
    expect(await browser.evaluate('document.activeElement === window.kept && window.kept.title')).toMatch(/^edge-0005: changed/);
    expect(await text('.cell-text')).toMatch(/^edge-0005: changed/);
    expect(await browser.evaluate("document.getElementById('filter-text').value")).toBe('edge-0005');
    expect(await browser.evaluate("[...document.querySelectorAll('.cell')].filter((cell) => cell.checkVisibility()).length")).toBe(1);
    expect(await browser.evaluate(LOWEST_CONTRAST)).toMatchObject({ ratio: expect.toSatisfy((ratio: number) => ratio >= 4.5) });
    await run.restart();
    await waitFor('#connection', /^No connection/);
    await run.endUntil(500);
    await waitFor('#connection', /^Live/);
    await waitFor('.verdict', /500 of 1000 hosts done/);
    expect(await counts()).toContain('· 496 not started yet');
    await run.endUntil(1_000);
    await run.end();
    await waitFor('#connection', /^The command has ended/);
    expect(await text('.verdict')).toContain('1000 hosts');
    expect(await text('#part-progress')).toBe('');
    expect(await browser.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  });
});
