import { describe, expect, it } from 'vitest';
import { hostsOf, parseAmount } from '../../../src/fleet/amount.ts';
import { mayBegin, type RolloutRules, type RolloutState, whyStop } from '../../../src/fleet/rollout.ts';

const RULES: RolloutRules = { canary: 0, serial: 10, maxFail: null };
const STATE: RolloutState = { passed: 0, failed: 0, broken: 0, changing: 0 };

describe('amounts', () => {
  it.each([
    ['5', 200, 5],
    ['20%', 200, 40],
    ['33%', 10, 3],
    ['5%', 10, 0],
    ['100%', 7, 7],
    ['0', 7, 0],
  ])('%s of %d hosts are %d', (text, total, hosts) => {
    const amount = parseAmount(text);
    expect(amount === null ? null : hostsOf(amount, total)).toBe(hosts);
  });

  it.each(['', '-1', '1.5', '101%', '%', '5 %', 'all', '1e3'])('%j is none', (text) => {
    expect(parseAmount(text)).toBeNull();
  });
});

describe('how many hosts may be begun', () => {
  it.each<[string, Partial<RolloutRules>, Partial<RolloutState>, number]>([
    ['as many as are allowed at a time', {}, {}, 10],
    ['those that are under way count', {}, { changing: 7 }, 3],
    ['never less than none', {}, { changing: 11 }, 0],
    ['first the canary alone', { canary: 1 }, {}, 1],
    ['nobody beside the canary', { canary: 1 }, { changing: 1 }, 0],
    ['all when it is well', { canary: 1 }, { passed: 1 }, 10],
    ['several canaries', { canary: 3 }, { passed: 1, changing: 1 }, 1],
    ['no more canaries than hosts at a time', { canary: 3, serial: 1 }, {}, 1],
    ['another canary when one was refused before anything was changed', { canary: 1 }, { failed: 1 }, 1],
    ['nobody after a canary that broke', { canary: 1 }, { failed: 1, broken: 1 }, 0],
    ['all the others when a later host broke', { canary: 1 }, { passed: 1, failed: 1, broken: 1 }, 10],
    ['nobody with more failures than allowed', { maxFail: 1 }, { failed: 2 }, 0],
    ['as many failures as allowed stop nobody', { maxFail: 2 }, { failed: 2 }, 10],
    ['one failure when none is allowed', { maxFail: 0 }, { failed: 1 }, 0],
    ['by default twice as many as passed', { canary: 1, cautious: true }, { passed: 3, changing: 1 }, 5],
    ['by default one host after a failure behind the canary', { canary: 1, cautious: true }, { passed: 1, failed: 1, broken: 1 }, 1],
    ['by default nobody after two failures of three', { canary: 1, cautious: true }, { passed: 1, failed: 2, broken: 2 }, 0],
    ['by default two failures of twenty', { canary: 1, cautious: true }, { passed: 18, failed: 2, broken: 2 }, 10],
    ['by default nobody after more than ten failures', { canary: 1, cautious: true }, { passed: 989, failed: 11, broken: 11 }, 0],
    ['by default hosts refused before a change do not count', { canary: 1, cautious: true }, { passed: 5, failed: 50 }, 10],
    ['without a canary as many as are allowed at a time', { cautious: true }, {}, 10],
  ])('%s', (_, rules, state, expected) => {
    expect(mayBegin({ ...RULES, ...rules }, { ...STATE, ...state })).toBe(expected);
  });

  it('says why nobody is begun any more', () => {
    expect(whyStop({ ...RULES, canary: 1 }, { ...STATE, failed: 1, broken: 1 })).toBe('the first host to be changed failed');
    expect(whyStop({ ...RULES, maxFail: 0 }, { ...STATE, failed: 1 })).toBe('1 host failed, more than --max-fail allows');
    expect(whyStop(RULES, { ...STATE, failed: 99 })).toBeNull();
    expect(whyStop({ ...RULES, cautious: true }, { ...STATE, passed: 1, failed: 2, broken: 2 })).toBe(
      '2 of 3 changed hosts failed, more than the default limit (1, or 10% of the changed hosts, at most 10); --max-fail sets another limit',
    );
  });
});
