import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { findFlag, parseCommandLine } from '../../../../src/kubelet/flags/command-line.ts';

const catalogue = await loadCatalogue();

describe('parseCommandLine', () => {
  it.each<[string, readonly string[], readonly string[], (readonly string[])?]>([
    ['values behind =', ['--max-pods=5', '--node-labels=a=b,c=d'], ['max-pods 5', 'node-labels a=b,c=d']],
    ['values in the next argument', ['--max-pods', '5', '--config', '/x'], ['max-pods 5', 'config /x']],
    ['booleans do not consume the next argument', ['--fail-swap-on', 'false'], ['fail-swap-on true'], ['false']],
    ['underscores', ['--max_pods=5', '--log_dir=/x', '--log-dir=/y'], ['max-pods 5', 'log_dir /x', 'log_dir /y']],
    ['shorthands', ['-v', '4', '-v=5', '-v6'], ['v 4', 'v 5', 'v 6']],
    ['the end of flags', ['--v=1', '--', '--max-pods=1'], ['v 1'], ['--max-pods=1']],
    ['unknown flags', ['--strange', 'x', '--odd=1', '--other', '--v=2'], ['strange x', 'odd 1', 'other true', 'v 2']],
    ['empty values', ['--provider-id='], ['provider-id ']],
    ['arguments that are not flags', ['run', '-'], [], ['run', '-']],
    ['no arguments', [], []],
  ])('%s', (_, words, flags, others = []) => {
    const line = parseCommandLine(words, { catalogue, minor: 21 });
    expect(line.flags.map(({ name, value }) => `${name} ${value}`)).toEqual(flags);
    expect(line.others).toEqual(others);
  });
});

describe('findFlag', () => {
  it.each([
    ['--max-pods=5', 'max-pods'],
    ['max_pods', 'max-pods'],
    ['-v', 'v'],
    ['--nothing', undefined],
  ])('%s is %s', (name, flag) => {
    expect(findFlag(name, { catalogue, minor: 36 })?.flag).toBe(flag);
  });
});
