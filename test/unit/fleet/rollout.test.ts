import { describe, expect, it } from 'vitest';
import { hostsOf, parseAmount } from '../../../src/fleet/amount.ts';
import { maxHostsToStart, type RolloutRules, type RolloutState, rolloutStopReason } from '../../../src/fleet/rollout.ts';

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

  it.each(['', '-1', '1.5', '101%', '%', '5 %', 'all', '1e3'])('%j is invalid', (text) => {
    expect(parseAmount(text)).toBeNull();
  });
});

describe('the number of hosts that may be started', () => {
  it.each<[string, Partial<RolloutRules>, Partial<RolloutState>, number]>([
    ['the maximum number at a time', {}, {}, 10],
    ['fewer while hosts are in progress', {}, { changing: 7 }, 3],
    ['never negative', {}, { changing: 11 }, 0],
    ['first the canary alone', { canary: 1 }, {}, 1],
    ['none in addition to the canary', { canary: 1 }, { changing: 1 }, 0],
    ['the maximum after a successful canary', { canary: 1 }, { passed: 1 }, 10],
    ['several canaries', { canary: 3 }, { passed: 1, changing: 1 }, 1],
    ['no more canaries than hosts at a time', { canary: 3, serial: 1 }, {}, 1],
    ['another canary when one was refused before anything was changed', { canary: 1 }, { failed: 1 }, 1],
    ['none after a failed canary', { canary: 1 }, { failed: 1, broken: 1 }, 0],
    ['the maximum after a failure of a later host', { canary: 1 }, { passed: 1, failed: 1, broken: 1 }, 10],
    ['none with more failures than allowed', { maxFail: 1 }, { failed: 2 }, 0],
    ['the maximum with as many failures as allowed', { maxFail: 2 }, { failed: 2 }, 10],
    ['none after one failure if none is allowed', { maxFail: 0 }, { failed: 1 }, 0],
    ['by default twice the number of updated hosts', { canary: 1, cautious: true }, { passed: 3, changing: 1 }, 5],
    ['by default one host after a failure of the second host', { canary: 1, cautious: true }, { passed: 1, failed: 1, broken: 1 }, 1],
    ['by default none after two failures of three', { canary: 1, cautious: true }, { passed: 1, failed: 2, broken: 2 }, 0],
    ['by default the maximum after two failures of twenty', { canary: 1, cautious: true }, { passed: 18, failed: 2, broken: 2 }, 10],
    ['by default none after more than ten failures', { canary: 1, cautious: true }, { passed: 989, failed: 11, broken: 11 }, 0],
    ['by default hosts refused before a change are ignored', { canary: 1, cautious: true }, { passed: 5, failed: 50 }, 10],
    ['without a canary the maximum number at a time', { cautious: true }, {}, 10],
  ])('%s', (_, rules, state, expected) => {
    expect(maxHostsToStart({ ...RULES, ...rules }, { ...STATE, ...state })).toBe(expected);
  });

  it('reports why no more hosts are started', () => {
    expect(rolloutStopReason({ ...RULES, canary: 1 }, { ...STATE, failed: 1, broken: 1 })).toBe('the first host to be changed failed');
    expect(rolloutStopReason({ ...RULES, maxFail: 0 }, { ...STATE, failed: 1 })).toBe('1 host failed, more than --max-fail allows');
    expect(rolloutStopReason(RULES, { ...STATE, failed: 99 })).toBeNull();
    expect(rolloutStopReason({ ...RULES, cautious: true }, { ...STATE, passed: 1, failed: 2, broken: 2 })).toBe(
      '2 of 3 changed hosts failed, more than the default limit of 1 (10% of the changed hosts, from 1 to 10)',
    );
  });
});
