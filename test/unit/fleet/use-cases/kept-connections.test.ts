import { describe, expect, it } from 'vitest';
import type { ReportEvent } from '../../../../src/base/reporter.ts';
import type { FleetHostTarget, HostTarget } from '../../../../src/fleet/host-target.ts';
import { keptConnections } from '../../../../src/fleet/use-cases/apply-fleet.ts';
import { MOST_OPEN } from '../../../../src/fleet/use-cases/fleet-rules.ts';
import type { Host } from '../../../../src/host/access/host.ts';

const target = (name: string): HostTarget => ({ member: { name, ssh: {}, directory: '/' } as unknown as FleetHostTarget });

function world() {
  const opened: string[] = [];
  const closed: string[] = [];
  const kept = keptConnections({
    connectHost: async ({ member }, reporter) => {
      const name = `${member?.name} ${opened.length + 1}`;
      opened.push(name);
      return {
        name,
        query: async () => {
          reporter?.report({ level: 'debug', code: 'HOST_ASKED', message: name });
          return {};
        },
        close: async () => {
          closed.push(name);
        },
      } as unknown as Host;
    },
  });
  return { kept, opened, closed };
}

describe('keptConnections', () => {
  it('returns an ended connection once; each further connection is new', async () => {
    const { kept, opened, closed } = world();
    await (await kept.connectHost(target('a'))).close();
    kept.stopKeeping();
    const again = await kept.connectHost(target('a'));
    const further = await kept.connectHost(target('a'));
    expect([again.name, further.name]).toEqual(['a 1', 'a 2']);
    await again.close();
    await further.close();
    expect([opened, closed]).toEqual([
      ['a 1', 'a 2'],
      ['a 1', 'a 2'],
    ]);
  });

  it('logs to the reporter of the present user', async () => {
    const { kept } = world();
    const events: string[] = [];
    const reporterOf = (user: string) => ({ report: ({ message }: ReportEvent) => void events.push(`${user}: ${message}`) });
    const first = await kept.connectHost(target('a'), reporterOf('plan'));
    await first.query({});
    await first.close();
    await (await kept.connectHost(target('a'), reporterOf('apply'))).query({});
    expect(events).toEqual(['plan: a 1', 'apply: a 1']);
  });

  it('keeps no more than a run may have open, and closes the rest at the end', async () => {
    const { kept, closed } = world();
    const hosts = await Promise.all(Array.from({ length: MOST_OPEN + 2 }, (_, i) => kept.connectHost(target(`h${i}`))));
    for (const host of hosts) await host.close();
    expect(closed).toHaveLength(2);
    await kept.close();
    expect(closed).toHaveLength(MOST_OPEN + 2);
  });
});
