import { describe, expect, it } from 'vitest';
import { canaryRules, type RulesRequest } from '../../../../src/fleet/use-cases/fleet-rules.ts';

const hostsOf = (...names: readonly string[]) => names.map((name) => ({ name, role: 'worker' as const, groups: [], nodeRegistration: {} }));
const REQUEST: RulesRequest = { parallel: 50, maxUnavailable: null, maxFail: null };
const ALL = hostsOf('a', 'b', 'c', 'd');

describe('the canaries of apply', () => {
  it.each<[string, Partial<RulesRequest>, readonly string[] | undefined, readonly string[]]>([
    ['are the first host by default', {}, undefined, ['a']],
    ['are those of the saved plan', {}, ['b', 'c'], ['b', 'c']],
    ['are none if the saved plan has none', {}, [], []],
    ['are the number of --canary, against a saved plan', { canary: { hosts: 1 } }, ['b', 'c'], ['a']],
    ['are those of --canary, against a saved plan without', { canary: { hosts: 1 } }, [], ['a']],
    ['are none with --canary 0, against a saved plan', { canary: { hosts: 0 } }, ['b', 'c'], []],
    ['are the named ones', { canaryHosts: ['c'] }, ['b'], ['c']],
  ])('%s', (_, request, planned, expected) => {
    const { canary, canaryOrder } = canaryRules({ ...REQUEST, ...request }, ALL, { selected: ALL, planned });
    expect(canaryOrder.slice(0, canary)).toEqual(expected);
  });

  it('are another host if the named one or that of the plan has succeeded in an earlier run', () => {
    const left = hostsOf('b', 'c');
    for (const [request, planned] of [[{ canaryHosts: ['a'] }], [{}, ['a']]] as const) {
      const { canary, canaryOrder } = canaryRules({ ...REQUEST, ...request }, left, { selected: ALL, planned });
      expect(canaryOrder.slice(0, canary)).toEqual(['b']);
    }
  });

  it('must be selected hosts', () => {
    expect(() => canaryRules({ ...REQUEST, canaryHosts: ['d'] }, ALL, { selected: hostsOf('a') })).toThrow('no host of the run');
  });
});
