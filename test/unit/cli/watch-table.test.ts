import { describe, expect, it } from 'vitest';
import { readJsonPathFormat } from '../../../src/cli/output/jsonpath-format.ts';
import type { TableFormat } from '../../../src/cli/show-table.ts';
import { tableWatch, type WatchedRow } from '../../../src/cli/watch-table.ts';

const row = (node: string, state: string, age = '1m'): WatchedRow => ({
  name: `node/${node}`,
  cells: [node, state, age],
  wide: ['v1.36.2'],
  document: { node, state },
  notes: state === 'rejected' ? [`${node}: maxPods is negative.`] : [],
});

/** Shows tables one after the other. @returns what each of them printed */
function watched(tables: readonly (readonly WatchedRow[])[], format: TableFormat = 'text', headers = true): readonly string[] {
  const parts: string[] = [];
  const show = tableWatch({ stdout: (part) => void parts.push(String(part)) }, { format, headers });
  return tables.map((rows) => {
    show({ columns: ['NODE', 'STATE', 'SINCE'], wide: ['KUBELET'], rows, empty: 'No nodes found.' });
    return parts.splice(0).join('');
  });
}

describe('a watched table', () => {
  it('prints the header and all rows once, then changed rows in the same columns', () => {
    const [first, second, third] = watched([
      [row('n1', 'waiting'), row('worker-2', 'good')],
      [row('n1', 'waiting', '2m'), row('worker-2', 'good', '2m')],
      [row('n1', 'good', '3m'), row('worker-2', 'good', '3m')],
    ]);
    expect(first).toBe('NODE      STATE    SINCE\nn1        waiting  1m\nworker-2  good     1m\n');
    // The age alone is not a change.
    expect(second).toBe('');
    expect(third).toBe('n1        good     3m\n');
  });

  it('widens a column for a longer value, and keeps it wide', () => {
    const [, second, third] = watched([[row('n1', 'good')], [row('n1', 'assignment lost')], [row('n1', 'good')]]);
    expect(second).toBe('n1    assignment lost  1m\n');
    expect(third).toBe('n1    good             1m\n');
  });

  it('prints a row again that returns to an earlier state', () => {
    expect(
      watched([[row('n1', 'good')], [row('n1', 'waiting')], [row('n1', 'good')]])
        .slice(1)
        .every((text) => text !== ''),
    ).toBe(true);
  });

  it('prints the notes of changed rows only', () => {
    const tables = watched([
      [row('n1', 'rejected'), row('n2', 'good')],
      [row('n1', 'rejected'), row('n2', 'waiting')],
    ]);
    expect(tables.map((text) => text.includes('maxPods is negative'))).toEqual([true, false]);
  });

  it('reports rows that are gone, and new rows', () => {
    const [, second, third] = watched([
      [row('n1', 'good'), row('n2', 'good')],
      [row('n1', 'good')],
      [row('n1', 'good'), row('n2', 'good')],
    ]);
    expect(second).toBe('node/n2: deleted, or no longer selected.\n');
    expect(third).toBe('n2    good   1m\n');
  });

  it('prints the header before the first row if the first table was empty', () => {
    expect(watched([[], [], [row('n1', 'good')]])).toEqual(['No nodes found.\n', '', 'NODE  STATE  SINCE\nn1    good   1m\n']);
  });

  it('has the columns of wide, and no header if none is wanted', () => {
    expect(watched([[row('n1', 'good')], [row('n1', 'off')]], 'wide', false)).toEqual([
      'n1  good  1m  v1.36.2\n',
      'n1  off   1m  v1.36.2\n',
    ]);
  });
});

describe('watched objects are printed one by one', () => {
  const tables = [[row('n1', 'good'), row('n2', 'good')], [row('n1', 'good'), row('n2', 'off')], [row('n2', 'off')]];

  it('with -o name', () => {
    expect(watched(tables, 'name')).toEqual(['node/n1\nnode/n2\n', 'node/n2\n', 'node/n1\n']);
  });

  it('with -o json', () => {
    const [, second = '', third = ''] = watched(tables, 'json');
    expect(JSON.parse(second)).toEqual({ node: 'n2', state: 'off' });
    expect(JSON.parse(third)).toEqual({ node: 'n1', state: 'good', removed: true });
  });

  it('with -o yaml, as a stream of documents', () => {
    expect(watched(tables, 'yaml')).toEqual([
      'node: n1\nstate: good\n---\nnode: n2\nstate: good\n',
      '---\nnode: n2\nstate: "off"\n',
      '---\nnode: n1\nstate: good\nremoved: true\n',
    ]);
  });

  it('with a template, which is applied to the object', () => {
    expect(watched(tables, readJsonPathFormat('jsonpath={.node}={.state}{"\\n"}', 'ignored'))).toEqual([
      'n1=good\nn2=good\n',
      'n2=off\n',
      'n1=good\n',
    ]);
  });
});
