import { expect, it } from 'vitest';
import { planMarkdown } from '../../../src/cli/plan-markdown.ts';
import { plannedHost } from '../../support/report-inputs.ts';

/** The maximum length of a comment on GitHub. */
const LIMIT = 65_536;
const OPTIONS = { access: null, canary: [], batches: [] };

it('a plan of many different hosts fits into a comment, and counts the lines that are left out', () => {
  const hosts = Array.from({ length: 800 }, (_, i) =>
    plannedHost(`${'long-name-'.repeat(6)}${i}`, {
      content: `maxPods: ${i}\n`,
      fields: [{ field: 'maxPods', before: 110, after: i, impact: 'safe' }],
    }),
  );
  const text = planMarkdown(hosts, OPTIONS);
  expect(text.length).toBeLessThan(LIMIT);
  expect(text.match(/… \d+ more lines/g)).toHaveLength(2);
});

it('no text of a host ends the block of code', () => {
  const text = planMarkdown([plannedHost('n1', { content: 'a\n`````\n</details>\n' })], OPTIONS);
  const fences = text.match(/^`{6}(?:diff)?$/gm);
  expect(fences?.slice(-2)).toEqual(['``````diff', '``````']);
});
