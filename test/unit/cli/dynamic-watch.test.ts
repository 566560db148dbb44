import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import { renderText, type Text } from '../../../src/base/text/styled.ts';
import { watchRollout } from '../../../src/cli/dynamic-watch.ts';
import { textReporter } from '../../../src/cli/output/reporter-text.ts';
import type { Display, Output } from '../../../src/cli/output/services.ts';
import { readNodeConfig } from '../../../src/dynamic/status/node-config.ts';
import type { RolloutOutcome } from '../../../src/dynamic/workflows/rollout.ts';

const START = Date.parse('2030-01-01T00:00:00Z');
const NOW = START + 60_000;
const plain = (text: Text): string => renderText(text, false);

function outcome(name: string, trialEnds: string | null, stage: RolloutOutcome['stage'] = 'in-progress'): RolloutOutcome {
  const config = readNodeConfig({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
  const report = {
    status: 'True',
    reason: 'Trial',
    message: '',
    observed: true,
    at: '',
    errorSince: null,
    trialEnds,
    requiresSignature: false,
  };
  const verdict = { state: 'trial' as const, since: null, why: null, hint: null };
  return {
    name,
    desired: null,
    stage,
    validated: { config: { ...config, report }, verdict },
    error: null,
    isTouched: true,
    beganAt: START,
    updatedSince: null,
  };
}

/** Watches a rollout on a terminal, whose clock stands still at NOW. */
function watched({ wait = 'good', asEvents = false }: { readonly wait?: 'trial' | 'good'; readonly asEvents?: boolean } = {}) {
  let display: Display | null = null;
  let printed = '';
  const output: Pick<Output, 'stdout' | 'stderr' | 'document' | 'status' | 'width'> = {
    stdout: () => undefined,
    document: () => undefined,
    stderr: (text) => {
      printed += plain(text);
    },
    status: (next) => {
      display = next;
    },
    width: () => 60,
  };
  let isFirst = true;
  const clock: Clock = {
    now: () => new Date(NOW),
    sleep: (_, signal) => {
      if (isFirst) {
        isFirst = false;
        return Promise.resolve();
      }
      return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    },
  };
  const rollout = {
    wait,
    onFailure: 'stop',
    timeoutMs: 900_000,
    minReadyMs: 0,
    rulesFor: () => ({ canary: 1, maxUnavailable: 2, maxFail: 0 }),
  } as const;
  const watch = watchRollout(
    { clock, output },
    { reporter: textReporter(output, 0), title: 'dynamic assign', rollout, page: null, asEvents },
  );
  return {
    watch,
    printed: () => printed,
    shown: async (): Promise<readonly string[]> => {
      await new Promise((resolve) => setImmediate(resolve));
      return display === null ? [] : display({ width: 80, height: 20 }).map(plain);
    },
  };
}

describe('the display of a rollout', () => {
  it('shows equal nodes on one line, with the rest of the trial that their agents report', async () => {
    const { watch, shown } = watched();
    const ends = '2030-01-01T00:05:12Z';
    watch.listenerFor({ total: 4, prefix: '' }).progress?.([outcome('n1', ends), outcome('n2', ends), outcome('n3', null)]);
    const rows = (await shown()).slice(1).map((line) => line.replace(/ +/g, ' ').trim());
    expect(rows).toEqual(['n1, n2 (2) trial 1m0s trial ends in 4m12s', 'n3 trial 1m0s times out in 14m0s']);
    watch.close();
  });

  it('shows the time limit if the trial would end later, or the rollout does not wait for its end', async () => {
    for (const [wait, ends] of [
      ['good', '2030-01-01T01:00:00Z'],
      ['trial', '2030-01-01T00:05:12Z'],
    ] as const) {
      const { watch, shown } = watched({ wait });
      watch.listenerFor({ total: 1, prefix: '' }).progress?.([outcome('n1', ends)]);
      expect((await shown()).at(-1)).toContain('times out in 14m0s');
      watch.close();
    }
  });

  it('prints changed nodes of a batch together, and no line for each step', () => {
    const { watch, printed } = watched();
    const listener = watch.listenerFor({ total: 30, prefix: '' });
    listener.batch?.({ number: 1, names: ['n1'], isCanary: true, down: [] });
    for (const name of ['n1', 'n2', 'n3']) {
      listener.assigned?.(name, null, true);
      listener.state?.(outcome(name, null).validated);
      listener.ended?.(outcome(name, null, 'changed'));
    }
    listener.ended?.(outcome('n4', null, 'failed'));
    expect(printed()).toBe('batch 1 (canary), 1 node: n1\n');
    listener.batch?.({ number: 2, names: ['n5'], isCanary: false, down: [] });
    watch.close();
    expect(printed()).toBe('batch 1 (canary), 1 node: n1\nn[1:3] (3 nodes) changed (60.0s)\nbatch 2, 1 node: n5\n');
  });

  it('reports each step as an event with -o json', () => {
    const { watch, printed } = watched({ asEvents: true });
    watch.listenerFor({ total: 30, prefix: '' }).assigned?.('n1', null, true);
    expect(printed()).toBe('n1 reset\n');
  });
});
