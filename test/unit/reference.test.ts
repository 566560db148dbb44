import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manPages } from '../../scripts/reference/man-pages.ts';
import { referencePages } from '../../scripts/reference/pages.ts';
import { withSignalTable } from '../../scripts/reference/signal-table.ts';
import { allHelp } from '../support/help-texts.ts';
import { REPOSITORY } from '../support/source-files.ts';

const COMMANDS = (await allHelp()).filter(({ path, command }) => path !== '' && command.name() !== 'help' && !/(?:^| )phase /.test(path));
const OPTIONS = COMMANDS.flatMap(({ path, command }) =>
  command
    .createHelp()
    .visibleOptions(command)
    .map(({ long, short }) => ({ path, flag: long ?? short ?? '' })),
);

describe('docs/reference', () => {
  it('is up to date; otherwise run npm run reference', async () => {
    const written = readdirSync(join(REPOSITORY, 'docs/reference')).map((name): [string, string] => [
      `docs/reference/${name}`,
      readFileSync(join(REPOSITORY, 'docs/reference', name), 'utf8'),
    ]);
    expect(new Map(written)).toEqual(new Map([...(await referencePages())].toSorted()));
  });

  it('has each command and option', async () => {
    const pages = await referencePages();
    const shared = pages.get('docs/reference/README.md') ?? '';
    const sections = new Map(
      [...pages.values()].flatMap((text) => text.split(/^##? kubeletadm /m).map((part) => [part.split('\n')[0], part])),
    );
    expect(COMMANDS.length).toBeGreaterThan(80);
    expect(COMMANDS.filter(({ path }) => !sections.has(path)).map(({ path }) => path)).toEqual([]);
    const missing = OPTIONS.filter(({ path, flag }) => !`${sections.get(path)}${shared}`.includes(flag));
    expect(missing).toEqual([]);
  });
});

describe('docs/health.md', () => {
  it('has the current table of signals; otherwise run npm run reference', () => {
    const page = readFileSync(join(REPOSITORY, 'docs/health.md'), 'utf8');
    expect(withSignalTable(page)).toBe(page);
  });
});

describe('the manual pages', () => {
  it('have each command and option', async () => {
    const pages = await manPages('0.0.0-test');
    const shared = pages.get('kubeletadm.1') ?? '';
    const missing = OPTIONS.filter(
      ({ path, flag }) => !`${pages.get(`kubeletadm-${path.split(' ')[0]}.1`)}${shared}`.includes(flag.replaceAll('-', '\\-')),
    );
    expect(OPTIONS.length).toBeGreaterThan(1000);
    expect(missing).toEqual([]);
  });

  it('have no line that roff reads as an unknown request', async () => {
    const lines = [...(await manPages('0.0.0-test')).values()].flatMap((text) => text.split('\n'));
    const unknown = lines.filter((line) => /^['.]/.test(line) && !/^\.(?:TH|SH|SS|TP|PP|B|BR|nf|fi|ad|nh)(?: |$)/.test(line));
    expect(unknown).toEqual([]);
  });
});
