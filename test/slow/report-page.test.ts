import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renderReport } from '../../src/cli/report/render-report.ts';
import type { ReportModel } from '../../src/fleet/report/report-model.ts';
import { loadTemplates } from '../../src/template-files.ts';
import { findChromium, type HeadlessBrowser, startBrowser } from '../support/headless-browser.ts';
import { certificate, changeEvents, hostileModels, plannedHost, runModel, statusModel, statusRow } from '../support/report-inputs.ts';
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

/** The lowest contrast of a text with its background, by WCAG 2. */
const LOWEST_CONTRAST = `(() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const backgroundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let lowest = { ratio: 99, text: '' };
  for (const element of document.querySelectorAll('body *:not(script):not(title)')) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join('').trim();
    if (text === '' || element.getClientRects().length === 0) continue;
    const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(backgroundOf(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < lowest.ratio) lowest = { ratio, text: element.tagName + ' ' + text.slice(0, 40) };
  }
  return lowest;
})()`;

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
});
