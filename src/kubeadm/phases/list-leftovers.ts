import { observe } from '../../host/observe.ts';
import { definePhase } from '../../host/phase.ts';
import { type Leftover, leftovers } from '../../kubelet/facts/leftovers.ts';

const NAME = 'leftovers';

/** Lists the items that reset leaves on the host, each with a command to remove it. */
export const listLeftovers = definePhase<unknown, readonly Leftover[]>({
  name: NAME,
  short: 'List what reset does not remove, and how to remove it',
  observe: ({ host, signal }) => observe(host, leftovers, signal),
  plan: (found) => {
    const names = found.map(({ what }) => what).join('; ');
    return { changes: [], noop: found.length === 0 ? 'no leftovers' : `left on the host: ${names}` };
  },
  verify: async ({ host, reporter }, _, found) => {
    for (const { what, hint } of found)
      reporter.report({
        level: 'info',
        code: 'LEFT_BEHIND',
        host: host.name,
        phase: NAME,
        message: `left on the host: ${what}; to remove: ${hint}`,
      });
  },
});
