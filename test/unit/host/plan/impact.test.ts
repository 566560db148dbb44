import { describe, expect, it } from 'vitest';
import { exceeds, highestImpact, IMPACTS, type Impact } from '../../../../src/host/plan/impact.ts';

describe('highestImpact', () => {
  it.each<[readonly (Impact | null | undefined)[], Impact | null]>([
    [[], null],
    [[null, undefined], null],
    [['safe', null], 'safe'],
    [['new-pods-only', 'safe'], 'new-pods-only'],
    [['drain', 'new-pods-only'], 'drain'],
    [['safe', 'unsafe', 'drain'], 'unsafe'],
  ])('of %j is %s', (impacts, highest) => {
    expect(highestImpact(impacts)).toBe(highest);
  });
});

describe('exceeds', () => {
  it('compares in the order safe, new-pods-only, drain, unsafe', () => {
    const above = (allowed: Impact): readonly Impact[] => IMPACTS.filter((impact) => exceeds(impact, allowed));
    expect(above('safe')).toEqual(['new-pods-only', 'drain', 'unsafe']);
    expect(above('new-pods-only')).toEqual(['drain', 'unsafe']);
    expect(above('drain')).toEqual(['unsafe']);
    expect(above('unsafe')).toEqual([]);
  });

  it('permits a change of no running kubelet', () => {
    expect(exceeds(null, 'safe')).toBe(false);
  });
});
