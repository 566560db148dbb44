import { describe, expect, it } from 'vitest';
import { closestName } from '../../../../src/base/text/closest-name.ts';

const NAMES = ['maxPods', 'podPidsLimit', 'port', 'evictionPressureTransitionPeriod', 'runOnce'];

describe('closestName', () => {
  it.each([
    ['maxPdos', 'maxPods'],
    ['maxpod', 'maxPods'],
    ['MAXPODS', 'maxPods'],
    ['prot', 'port'],
    ['evictionPresureTransitonPeriods', 'evictionPressureTransitionPeriod'],
    ['prt', 'port'],
    ['pots', null],
    ['hostname', null],
    ['', null],
    ['x'.repeat(100_000), null],
  ])('%s: %s', (name, expected) => {
    expect(closestName(name, NAMES)).toBe(expected);
  });
});
