import { describe, expect, it } from 'vitest';
import { renderWrappedTable } from '../../../../src/base/text/table.ts';
import { wrapLine } from '../../../../src/base/text/wrap-line.ts';

const ROWS = [
  ['HOST', 'RESULT', 'REASON', 'ACTION'],
  ['n1', 'failed', 'connection refused', 'Check address, port, network and firewall'],
  ['n2', 'failed', 'x'.repeat(30), 'Rerun'],
];

describe('a table with columns that may be broken', () => {
  it('breaks them at spaces if the table is wider than a line, and truncates longer words', () => {
    expect(renderWrappedTable(ROWS, { width: 50, flexible: 2 })).toEqual([
      'HOST  RESULT  REASON             ACTION',
      'n1    failed  connection         Check address,',
      '              refused            port, network and',
      '                                 firewall',
      `n2    failed  ${'x'.repeat(16)}…  Rerun`,
    ]);
  });

  it('gives a short column no more than it needs', () => {
    const lines = renderWrappedTable(ROWS.slice(0, 2), { width: 60, flexible: 2 });
    expect(lines[1]).toBe('n1    failed  connection refused  Check address, port,');
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(60);
  });

  it.each([undefined, 25])('breaks nothing without a terminal, or on one that is too narrow (%s)', (width) => {
    expect(renderWrappedTable(ROWS, { width, flexible: 2 })).toHaveLength(3);
  });
});

describe('a long line', () => {
  it('is wrapped at spaces, and its other lines are indented', () => {
    expect(wrapLine('aaaaaaaaaa bbbbbbbbbb cccccccccc dddddddddd', { width: 24, before: 3 })).toBe(
      'aaaaaaaaaa bbbbbbbbbb\n  cccccccccc dddddddddd',
    );
  });

  it('keeps its own indentation, and a word longer than a line', () => {
    const word = 'x'.repeat(40);
    expect(wrapLine(`  ab ${word} cd`, { width: 30 })).toBe(`  ab\n    ${word}\n    cd`);
  });

  it('loses and repeats nothing after several spaces', () => {
    expect(wrapLine('maxPods  200    config file', { width: 20 })).toBe('maxPods 200 config\n  file');
  });

  it('is not broken if the width is unknown', () => {
    expect(wrapLine('a '.repeat(100), { width: undefined })).toBe('a '.repeat(100));
  });
});
