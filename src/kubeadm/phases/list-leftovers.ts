import { observe } from '../../host/observe.ts';
import { definePhase } from '../../host/phase.ts';
import { type Leftover, leftoversExcept } from '../../kubelet/facts/leftovers.ts';
import { POINTER_DROP_IN } from '../node-agent/agent-units.ts';
import { NATIVE_DROP_IN } from '../node-agent/native-flags.ts';

const NAME = 'leftovers';

export interface LeftoversInput {
  /** Paths of files that an earlier phase removes, and of directories that it empties. */
  readonly removed: readonly string[];
}

/** Drop-ins that an earlier phase removes. */
const OWN_DROP_INS = [POINTER_DROP_IN, NATIVE_DROP_IN];

/** Lists the items that reset leaves on the host, each with a command to remove it. */
export const listLeftovers = definePhase<LeftoversInput, readonly Leftover[]>({
  name: NAME,
  short: 'List the files and settings that reset does not remove, and the commands that remove them',
  observe: ({ host, signal }, { removed }) => observe(host, leftoversExcept([...removed, ...OWN_DROP_INS]), signal),
  plan: (found) => {
    const names = found.map(({ what }) => what).join('; ');
    if (found.length === 0) return { changes: [], noop: 'no leftovers' };
    return { changes: [], noop: `not removed: ${names}`, isReportedByVerify: true };
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
