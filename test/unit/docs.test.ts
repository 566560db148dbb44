import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anchorOf } from '../../src/base/problem-entries.ts';
import { formatMinor, NEWEST_MINOR } from '../../src/kubelet/catalogue/catalogue.ts';
import { REPOSITORY } from '../support/source-files.ts';

const DOCS = readdirSync(join(REPOSITORY, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);
const OTHERS = ['README.md', 'SECURITY.md', 'CHANGELOG.md', 'vagrant/README.md', 'examples/README.md'].filter((path) =>
  existsSync(join(REPOSITORY, path)),
);

interface Link {
  /** From the root of the repository; empty: outside. */
  readonly path: string;
  readonly anchor: string;
  readonly written: string;
}

function textOf(path: string): string {
  return readFileSync(join(REPOSITORY, path), 'utf8');
}

/** The text without blocks of code. */
function proseOf(path: string): string {
  return textOf(path).replace(/^```[\s\S]*?^```/gm, '');
}

function linksOf(path: string): readonly Link[] {
  const text = proseOf(path).replace(/`[^`\n]*`/g, '`');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [file = '', anchor = ''] = target.split('#');
    return [{ path: file === '' ? path : normalize(join(dirname(path), file)), anchor, written: `${path}: ${target}` }];
  });
}

/** The anchors of a page's headings; those of equal headings are numbered. */
function anchorsOf(path: string): ReadonlySet<string> {
  const anchors = [...proseOf(path).matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) => anchorOf(heading));
  return new Set(
    anchors.map((anchor, i) => {
      const before = anchors.slice(0, i).filter((each) => each === anchor).length;
      return before === 0 ? anchor : `${anchor}-${before}`;
    }),
  );
}

const LINKS = [...DOCS, ...OTHERS].flatMap(linksOf);

describe('the documentation', () => {
  it('has links', () => {
    expect(LINKS.length).toBeGreaterThan(100);
    expect(LINKS.filter(({ anchor }) => anchor !== '').length).toBeGreaterThan(30);
  });

  it('links to existing files', () => {
    expect(LINKS.filter(({ path }) => !existsSync(join(REPOSITORY, path))).map(({ written }) => written)).toEqual([]);
  });

  it('links to existing headings', () => {
    const dead = LINKS.filter(({ path, anchor }) => anchor !== '' && path.endsWith('.md') && existsSync(join(REPOSITORY, path))).filter(
      ({ path, anchor }) => !anchorsOf(path).has(anchor),
    );
    expect(dead.map(({ written }) => written)).toEqual([]);
  });

  it.each(['docs', 'docs/reference'])('has an index in %s that links to each page', (folder) => {
    const linked = new Set(linksOf(`${folder}/README.md`).map(({ path }) => path));
    const pages = DOCS.filter((path) => dirname(path) === folder && path !== `${folder}/README.md`);
    expect(pages.filter((path) => !linked.has(path))).toEqual([]);
  });

  it('is reached from README.md', () => {
    expect(linksOf('README.md').map(({ path }) => path)).toContain('docs/README.md');
    expect(linksOf('docs/README.md').map(({ path }) => path)).toContain('docs/reference/README.md');
    expect([...new Set(DOCS.map(dirname))].toSorted()).toEqual(['docs', 'docs/reference']);
  });
});

describe('docs/performance.md', () => {
  const rows = [...textOf('docs/performance.md').matchAll(/^\| [^|]+\? \| ([^|]+) \|/gm)].map(([, result = '']) => result);

  it('has only figures of the pages that it links to', () => {
    expect(rows.length).toBeGreaterThan(5);
    const wrong = rows.flatMap((result) => {
      const [, page = ''] = /\]\(([\w-]+\.md)#/.exec(result) ?? [];
      const source = page === '' ? '' : textOf(`docs/${page}`);
      const figures = result.replace(/\]\([^)]*\)/g, '').match(/\d+(?:[.,]\d+)*/g) ?? [];
      return page === '' ? [result] : figures.filter((figure) => !source.includes(figure)).map((figure) => `${figure} of ${page}`);
    });
    expect(wrong).toEqual([]);
  });
});

describe('docs/compatibility.md', () => {
  it('names the newest known version of kubelets', () => {
    expect(textOf('docs/compatibility.md')).toContain(
      `\n| later than ${formatMinor(NEWEST_MINOR)} | all | Rules of ${formatMinor(NEWEST_MINOR)}, with a warning |\n`,
    );
  });
});
