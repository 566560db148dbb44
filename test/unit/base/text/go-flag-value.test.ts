import { describe, expect, it } from 'vitest';
import { expectedFlagValue } from '../../../../src/base/text/go-flag-value.ts';

/** Verdicts of kube-apiserver and kube-scheduler 1.36.2. */
describe('expectedFlagValue', () => {
  it.each([
    ['bool', ['true', 'T', 'FALSE', '1', '0'], ['', 'yes', 'tRUE', '2']],
    ['int', ['7', '-7', '+5', '0x10', '1_0', '010', '0b1', '0o7'], ['', '08', ' 5', '30d', '1.5', '1__0']],
    ['Level', ['2', '08'], ['-1', ' 3', 'x', '']],
    ['duration', ['1h30m', '0', '.5h', '-1s'], ['', '5', '1d', 'x']],
    ['ip', ['', ' 192.0.2.1 ', '::ffff:192.0.2.1', '::'], ['localhost', 'fe80::1%eth0', '010.1.1.1']],
    ['float64', ['1e-3', '0x1p-2', 'inf', '.5', '-7', 'NaN'], ['.', 'x', '', '7s', '1,5']],
    ['strings', ['anything', ''], []],
  ])('%s', (type, accepted, rejected) => {
    expect(accepted.filter((text) => expectedFlagValue(type, text) !== null)).toEqual([]);
    expect(rejected.filter((text) => expectedFlagValue(type, text) === null)).toEqual([]);
  });
});
