import { describe, expect, it } from 'vitest';
import { parseSource } from '../../../src/codec/source.ts';
import { within } from '../../support/within.ts';

/** Texts that took, or could take, too much time or memory. Each is also truncated to the maximum length. */
const HOSTILE: Readonly<Record<string, string>> = {
  'many items': '- a\n'.repeat(260_000),
  'many collections in brackets': `[${'[],'.repeat(340_000)}]`,
  'many mappings': 'a: {b: 1}\n'.repeat(100_000),
  'many documents': 'a: 1\n---\n'.repeat(100_000),
  'empty documents': '---\n'.repeat(260_000),
  'many anchors': 'a: &a 1\n'.repeat(100_000),
  'many aliases of one anchor': `a: &a 1\nb: [${'*a, '.repeat(14_000)}1]`,
  'aliases as keys': `a: &a x\n${'*a : 1\n'.repeat(8_000)}`,
  'unknown aliases': 'a: *a\n'.repeat(10_000),
  'merges of one mapping': `a: &a {b: 1}\n${'<<: *a\n'.repeat(9_000)}`,
  quotes: '"'.repeat(1_000_000),
  colons: ': '.repeat(500_000),
  'question marks': '? a\n'.repeat(250_000),
  directives: '%\n'.repeat(400_000),
  tabs: '\t'.repeat(1_000_000),
  'dashes that end in something else': `${'- '.repeat(150)}a: &a 1`,
  'deep mappings': Array.from({ length: 190 }, (_, i) => `${' '.repeat(i)}k:`).join('\n'),
  'deep brackets': `${'['.repeat(190)}1${']'.repeat(190)}`,
  'a long name': `${'x'.repeat(1_000_000)}: a`,
  'a long text': `a: "${'x\\n'.repeat(300_000)}"`,
  'a long block': `a: |\n${'  x\n'.repeat(250_000)}`,
};

describe('parseSource', () => {
  it.each(Object.entries(HOSTILE))('parses %s in seconds', async (_, text) => {
    for (const part of [text, text.slice(0, 64 * 1024)]) {
      const { problems } = await within(5_000, () => parseSource(part, 'f.yaml'));
      expect(problems.length).toBeLessThanOrEqual(50);
    }
  });

  it('rejects a file that is too large', () => {
    const [problem] = parseSource('b: 1\n'.repeat(60_000), 'f.yaml').problems;
    expect(problem).toMatchObject({
      code: 'CONFIG_TOO_LARGE',
      message: 'the file has 300000 characters; the limit is 65536',
      hint: 'Check that this is the right file: a configuration of kubeadm or of a kubelet has a few kilobytes',
    });
  });

  it('reports one problem for a document that is not valid YAML', () => {
    expect(parseSource('['.repeat(700), 'f.yaml').problems).toHaveLength(1);
    expect(parseSource('a: [1\n---\nb: [2\n', 'f.yaml').problems).toHaveLength(2);
  });
});
