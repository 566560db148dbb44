import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Secret, SensitiveText } from '../../../../src/base/text/secret.ts';
import { renderReport } from '../../../../src/cli/report/render-report.ts';
import { PARTS } from '../../../../src/cli/report/report-page.ts';
import type { ReportModel } from '../../../../src/fleet/report/report-model.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { UNSAFE } from '../../../support/hostile-text.ts';
import {
  certificate,
  changeEvents,
  failedHost,
  hostileModels,
  plannedHost,
  runModel,
  SECRET_TEXT,
  statusModel,
  statusRow,
} from '../../../support/report-inputs.ts';
import { REPOSITORY } from '../../../support/source-files.ts';

const TEMPLATES = await loadTemplates();
const render = (model: ReportModel): string => renderReport(model, TEMPLATES, '0.1.0');

/** All tags of the page outside of its style and script, without the values of attributes. */
function tagsOf(page: string): readonly string[] {
  const body = page.replace(/<style>[\s\S]*?<\/style>/, '').replace(/<script>[\s\S]*<\/script>\n<\/body>/, '');
  return [...body.matchAll(/<[^>]*>/g)].map(([tag]) => tag.replace(/="[^"]*"/g, ''));
}

/** The text of the page without tags; entities are decoded. */
function textOf(page: string): string {
  return page
    .replace(/<style>[\s\S]*?<\/style>/, '')
    .replace(/<[^>]*>/g, '')
    .replace(/&#x([0-9A-F]+);/gi, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&');
}

describe('the page of a plan', () => {
  const page = render(
    runModel([
      plannedHost('n1'),
      plannedHost('n2'),
      failedHost('n3', 'unreachable', { code: 'HOST_UNREACHABLE', message: 'connection refused', hint: 'Check the network' }),
    ]),
  );

  it('shows each field as old and new value, with the impact in words', () => {
    expect(page).toContain('<td class="safe"><code><span class="old">110</span> → 200</code><br><span class="tag safe">safe</span></td>');
    expect(page).toContain('<th scope="row">n1, n2<br><span class="dim">2 hosts</span></th>');
  });

  it('shows the lines of each change', () => {
    expect(page).toContain('<del>-maxPods: 110</del>\n<ins>+maxPods: 200</ins>\n');
    expect(page).toContain('--- /var/lib/kubelet/config.yaml\n+++ /var/lib/kubelet/config.yaml\n');
  });

  it('shows problems with hint and code', () => {
    expect(page).toContain(
      '<th scope="row"><span class="nowrap">n3</span> </th><td>connection refused<br><b>Hint:</b> Check the network <code>[HOST_UNREACHABLE]</code></td>',
    );
  });

  it('has only the parts with content, and links to them', () => {
    expect([...page.matchAll(/<a href="(#[a-z]+)">/g)].map(([, link]) => link)).toEqual(['#problems', '#overview', '#fields', '#changes']);
    expect([...page.matchAll(/<h2 id="([a-z]+)">/g)].map(([, id]) => `#${id}`)).toEqual(['#problems', '#overview', '#fields', '#changes']);
  });

  it('contains no secret', () => {
    const content = new SensitiveText(['token: ', new Secret(SECRET_TEXT), '\nmaxPods: 3\n']);
    const secret = render(runModel([plannedHost('n1', { content, before: `token: ${SECRET_TEXT}\n`, fields: [] })]));
    expect(secret).toContain('token: [secret]');
    expect(secret).not.toContain(SECRET_TEXT);
  });

  it('leaves out the lines of further changes when they would make the page too large', () => {
    const many = Array.from({ length: 30 }, (_, i) =>
      plannedHost(`n${i}`, { content: `x: ${i}\n${`# ${'x'.repeat(1_000)}\n`.repeat(100)}` }),
    );
    const large = render(runModel(many));
    expect(large.length).toBeLessThan(4_000_000);
    expect(large).toContain('The page would be too large with the lines of this entry.');
    expect(large.match(/\/config\.yaml \(0644 root:root\): its content differs/g)).toHaveLength(30);
  });
});

describe('the page of an apply', () => {
  const names = Array.from({ length: 5 }, (_, i) => `n${i}`);
  const events = names.flatMap((host, i) =>
    i === 0 ? changeEvents(host, 500, 4_000) : changeEvents(host, 4_000, i === 4 ? 60_000 : 8_000),
  );
  const page = render(
    runModel(
      names.map((host) => plannedHost(host, { status: 'changed' })),
      events,
    ),
  );

  it('has its sections in the order of the links to them, the timeline before the long diffs', () => {
    const [links, sections] = [/<a href="#([a-z]+)">/g, /<h2 id="([a-z]+)">/g].map((each) => [...page.matchAll(each)].map(([, id]) => id));
    expect(sections).toEqual(['overview', 'timeline', 'fields', 'changes']);
    expect(links).toEqual(sections);
  });

  it('shows the phases of each host on one axis', () => {
    const [, n0 = ''] = /<th scope="row">n0 (.*?)<\/tr>/.exec(page) ?? [];
    expect(n0).toContain('<span class="tag info">canary</span>');
    expect(n0).toContain('<td>3.5 s</td>');
    expect(n0).toContain('restarting the kubelet 0.3 s, waiting for Ready 2.9 s, confirming 0.1 s');
    expect(n0).toContain('<rect class="t-r" x="10" width="5"/>');
  });

  it('marks the changes of hosts that were rolled back or not started', () => {
    const statuses = { n1: 'changed', n2: 'rolled-back', n3: 'not-started', n4: 'not-started' } as const;
    const outcomes = Object.entries(statuses).map(([host, status]) => plannedHost(host, { status }));
    const tags = '<span class="tag error">1 rolled back: n2</span>SEP<span class="tag warning">2 not started: n3, n4</span>';
    const stopped = render(runModel(outcomes, changeEvents('n1', 0, 9_000)));
    expect(stopped).toContain(`n[1:4]<br><span class="dim">4 hosts</span><br>${tags.replace('SEP', '<br>')}</th>`);
    expect(stopped).toContain(`<span class="tag safe">safe</span> ${tags.replace('SEP', ' ')}</summary>`);
    expect(render(runModel(outcomes.slice(2)))).toContain('2 hosts</span><br><span class="tag warning">not started</span></th>');
    for (const plain of [runModel(outcomes.slice(0, 1)), runModel([plannedHost('n1')])])
      expect(render(plain)).toContain('1 host</span></th>');
  });

  it('does not show the end of a rollback as a further error', () => {
    const problem = { code: 'ROLLED_BACK', message: 'the previous files were restored' };
    expect(render(runModel([failedHost('n1', 'rolled-back', problem)]))).toContain('<span class="tag info">info</span>');
  });

  it('does not mark a host in progress as bad', () => {
    const begun = changeEvents('n0', 500, 9_000).filter(({ kind }) => kind !== 'ended');
    const running = render(runModel([plannedHost('n1', { status: 'changed' })], [...begun, ...changeEvents('n1', 500, 4_000)]));
    expect(running).toMatch(/<tr data-row><th scope="row">n0/);
    expect(running).not.toContain('not ok');
  });

  it('shows batches, and marks slow hosts in words', () => {
    expect([...page.matchAll(/<summary><b>(Batch[^<]*)<\/b>/g)].map(([, name]) => name)).toEqual(['Batch 1 (canary)', 'Batch 2']);
    expect(page).toMatch(/<tr data-row class="slow"><th scope="row">n4<\/th><td>56 s <span class="tag warning">slow<\/span>/);
    expect(page.match(/>slow</g)).toHaveLength(1);
  });

  it('folds the batches of a large run, and lists the hosts that need attention first', () => {
    const many = Array.from({ length: 1_000 }, (_, i) => `edge-${i}`);
    const ends = (i: number): number => (i % 100 === 7 ? 60_000 : 5_000);
    const run = many.flatMap((host, i) => changeEvents(host, 100, ends(i), i === 42 ? 'rolled-back' : 'changed'));
    const large = render(
      runModel(
        many.map((host, i) => plannedHost(host, { status: i === 42 ? 'rolled-back' : 'changed' })),
        run,
        0,
      ),
    );
    const folds = [...large.matchAll(/<details( open)?><summary><b>([^<]*)<\/b> <span class="dim">([^<]*)</g)];
    expect(folds.map(([, open, name, text]) => [open !== undefined, name, text])).toEqual([
      [true, 'Slow or not ok', '11 hosts, longest 1m00s'],
      [false, 'Batch 1', '1000 hosts, longest 1m00s'],
    ]);
    expect(large.length).toBeLessThan(1_000_000);
  });
});

describe('the page of fleet status', () => {
  const page = render(
    statusModel(
      [statusRow('n1'), statusRow('n2', { health: 'healthz 500', node: 'NotReady' }), statusRow('n3', { reachable: false, config: null })],
      [
        certificate('n1', 90),
        certificate('n2', 90),
        certificate('n3', 5),
        certificate('n4', -2, { state: 'error', notes: ['expired'] }),
        certificate('n1', 3_000, { role: 'ca' }),
      ],
    ),
  );

  it('shows the census of configurations and versions', () => {
    expect(page).toMatch(
      /<th scope="row" class="mono">ce6acdbc92a2.*<rect width="667" height="10"\/>.*<b>2<\/b> <span class="dim"><span class="nowrap">n1,<\/span> <span class="nowrap">n2<\/span> <\/span>/,
    );
    expect(page).toMatch(/<th scope="row" class="mono">v1\.36\.2/);
  });

  it('shows the states of hosts that need attention as tags', () => {
    expect(page).toContain('<span class="tag error">healthz 500</span>');
    expect(page).toContain('<td><span class="tag error">NotReady</span></td>');
  });

  it('shows the expiration dates of all certificates', () => {
    expect(textOf(page)).toContain('5 certificates of 4 hosts; 2 of them expired, not valid or about to expire within 30 days.');
    expect(page).toMatch(/2030-04-01<\/th><td>client<\/td><td><span class="tag ok">valid<\/span><\/td><td>n1, n2</);
    expect(page).toMatch(/2030-01-06<\/th><td>client<\/td><td><span class="tag warning">within 30 days<\/span>/);
    expect(page).toMatch(/2029-12-30<\/th><td>client<\/td><td><span class="tag error">expired or not valid<\/span>/);
  });
});

describe('every page', () => {
  it('runs only its own style and script', () => {
    const page = render(runModel([plannedHost('n1')]));
    const [, csp = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page) ?? [];
    const policy = csp.replaceAll('&#x27;', "'").replaceAll('&#x3D;', '=');
    const hashOf = (tag: string): string => {
      const [, text = ''] = new RegExp(`<${tag}>([\\s\\S]*)</${tag}>`).exec(page) ?? [];
      return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    };
    expect(policy).toBe(
      `default-src 'none'; style-src ${hashOf('style')}; script-src ${hashOf('script')}; base-uri 'none'; form-action 'none'`,
    );
  });

  it('refers to nothing outside of it', () => {
    for (const model of [runModel([plannedHost('n1')]), statusModel([statusRow('n1')])])
      expect(render(model)).not.toMatch(/\b(?:src|href|action|data|poster|srcset)="(?!#)|url\(|@import|\bimport\(/);
  });

  it('escapes every value', () => {
    const plain = [
      runModel([plannedHost('n1')]),
      runModel(
        [plannedHost('n1', { status: 'changed', warning: 'w' }), failedHost('n2', 'failed', { code: 'X', message: 'x' })],
        [...changeEvents('n1', 0, 9_000), ...changeEvents('n2', 0, 9_000, 'failed')],
      ),
      statusModel([statusRow('n1')], [certificate('n1', 9), certificate('n1', 900)]),
    ];
    const known = new Set(plain.flatMap((model) => tagsOf(render(model))));
    // Only a page with many groups folds them.
    known.add('<details data-row>');
    // Only a long list of hosts is folded.
    known.add('<details>');
    for (const model of hostileModels()) {
      const page = render(model);
      expect(tagsOf(page).filter((tag) => !known.has(tag))).toEqual([]);
      expect(textOf(page)).toContain('</style><script>window.injected = 1</script>');
      expect(textOf(page)).toContain('{{csp}}{{{script}}}');
      expect(page).not.toMatch(/<script>window|onmouseover="|<img/);
      expect(UNSAFE.test(page)).toBe(false);
    }
  });

  it('leaves only the style, the script and the rendered parts unescaped', () => {
    const unescaped = (template: string): readonly string[] =>
      [...template.matchAll(/\{\{\{[^}]*\}\}\}|\{\{&[^}]*\}\}/g)].map(([found]) => found);
    const page = readFileSync(join(REPOSITORY, 'templates/report/page.html.hbs'), 'utf8');
    const folder = join(REPOSITORY, 'templates/report/parts');
    const parts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
    expect(parts.length).toBeGreaterThanOrEqual(PARTS.length);
    // `this` is a script, `html` a part.
    expect(unescaped(page)).toEqual(['{{{style}}}', '{{{head}}}', '{{{links}}}', '{{{html}}}', '{{{this}}}']);
    for (const part of parts) expect(part).not.toMatch(/\{\{\{|\{\{&/);
    // An attribute without quotes could be left by a space.
    for (const template of [page, ...parts]) expect(template.match(/=\{\{/g)).toBeNull();
  });
});
