import { describe, expect, it } from 'vitest';
import type { Fault, SyncFailure } from '../../../../src/dynamic/agent/state.ts';
import { type TestAgent, testAgent } from './support.ts';

const E1 = 'failed to load config, see Kubelet log for details';
const E2 = 'failed to validate config, see Kubelet log for details';
const E4 = 'failed to sync: failed to download config, see Kubelet log for details';
const BAD: { refusal: Fault } = { refusal: { code: 'LOAD_FAILED', cause: 'it is no configuration' } };
const INVALID: { refusal: Fault } = { refusal: { code: 'VALIDATION_FAILED', cause: 'kubeAPIQPS: -1' } };
const GONE: SyncFailure = { code: 'DOWNLOAD_FAILED', cause: 'the ConfigMap does not exist' };
const good = (agent: TestAgent): void => agent.run(605);
const gone = (agent: TestAgent): void => void agent.send({ kind: 'unavailable', issue: GONE });

/**
 * The conformance scenarios of the kubelet's own dynamic configuration, by number, without those about the API
 * server's field validation. The agent reports without a restart; the kubelet reports after one.
 */
const SCENARIOS: readonly [number, string, (agent: TestAgent) => void, Readonly<Record<string, string>>, number][] = [
  [
    1,
    'the assignment is removed',
    (a) => {
      a.assign('A@1', 'a');
      a.unassign();
    },
    {},
    2,
  ],
  [11, 'nil to good', (a) => a.assign('A@1', 'a'), { assigned: 'A@1', active: 'A@1' }, 1],
  [12, 'nil to bad', (a) => a.assign('B@1', null, BAD), { assigned: 'B@1', error: E1 }, 0],
  [
    12,
    'good in trial to bad',
    (a) => {
      a.assign('A@1', 'a');
      a.assign('B@1', null, BAD);
    },
    { assigned: 'B@1', error: E1 },
    2,
  ],
  [13, 'nil to invalid', (a) => a.assign('B@1', 'b', INVALID), { assigned: 'B@1', error: E2 }, 0],
  [
    14,
    'bad to good',
    (a) => {
      a.assign('B@1', null, BAD);
      a.assign('A@1', 'a');
    },
    { assigned: 'A@1', active: 'A@1' },
    1,
  ],
  [
    15,
    'healthy for ten minutes',
    (a) => {
      a.assign('A@1', 'a');
      good(a);
    },
    { assigned: 'A@1', active: 'A@1', lastKnownGood: 'A@1' },
    1,
  ],
  [
    16,
    'bad after good',
    (a) => {
      a.assign('A@1', 'a');
      good(a);
      a.assign('B@1', null, BAD);
    },
    { assigned: 'B@1', active: 'A@1', lastKnownGood: 'A@1', error: E1 },
    1,
  ],
  [
    17,
    'back to the last known good: good at once',
    (a) => {
      a.assign('A@1', 'a');
      good(a);
      a.assign('B@1', null, BAD);
      a.assign('A@1', 'a');
    },
    { assigned: 'A@1', active: 'A@1', lastKnownGood: 'A@1' },
    1,
  ],
  [
    18,
    'another key',
    (a) => {
      a.assign('A@1', 'a');
      good(a);
      a.assign('A@1.bad', null, BAD);
    },
    { assigned: 'A@1.bad', active: 'A@1', lastKnownGood: 'A@1', error: E1 },
    1,
  ],
  [
    19,
    'the last known good is replaced',
    (a) => {
      a.assign('A@1', 'a');
      good(a);
      a.assign('B@1', 'b');
      good(a);
    },
    { assigned: 'B@1', active: 'B@1', lastKnownGood: 'B@1' },
    2,
  ],
  [
    21,
    'good, bad, good in place',
    (a) => {
      a.assign('A@1', 'a');
      a.assign('A@2', null, BAD);
      a.assign('A@3', 'a');
    },
    { assigned: 'A@3', active: 'A@3' },
    3,
  ],
  [
    22,
    'bad in place after good',
    (a) => {
      a.assign('A@1', 'a');
      good(a);
      a.assign('A@2', null, BAD);
    },
    { assigned: 'A@2', active: 'A@1', lastKnownGood: 'A@1', error: E1 },
    1,
  ],
  // A kubelet names the older version as its last known good; the agent knows that both contents are equal.
  [
    23,
    'good again in place',
    (a) => {
      a.assign('A@1', 'a');
      good(a);
      a.assign('A@2', null, BAD);
      a.assign('A@3', 'a');
    },
    { assigned: 'A@3', active: 'A@3', lastKnownGood: 'A@3' },
    1,
  ],
  [
    25,
    'nothing changed',
    (a) => {
      a.assign('A@1', 'a');
      a.assign('A@1', 'a');
    },
    { assigned: 'A@1', active: 'A@1' },
    1,
  ],
  // A kubelet restarts in this case.
  [
    26,
    'a label changed',
    (a) => {
      a.assign('A@1', 'a');
      a.assign('A@2', 'a');
    },
    { assigned: 'A@2', active: 'A@2' },
    1,
  ],
  [
    28,
    'deleted',
    (a) => {
      a.assign('A@1', 'a');
      gone(a);
    },
    { assigned: 'A@1', active: 'A@1', error: E4 },
    1,
  ],
  [
    29,
    'the ConfigMap is created again',
    (a) => {
      a.assign('A@1', 'a');
      gone(a);
      a.assign('A@7', 'a');
    },
    { assigned: 'A@7', active: 'A@7' },
    1,
  ],
  [30, 'missing from the first', (a) => gone(a), { error: E4 }, 0],
  // The kubelet keeps the error until its next restart.
  [
    31,
    'the failing assignment is removed',
    (a) => {
      gone(a);
      a.unassign();
    },
    {},
    0,
  ],
  [
    38,
    'a restart without the API server',
    (a) => {
      a.assign('A@1', 'a');
      a.reboot();
    },
    { assigned: 'A@1', active: 'A@1' },
    1,
  ],
  // A kubelet is in a crash loop in this case.
  [
    42,
    'assigned bad, last known good lost',
    (a) => {
      a.assign('A@1', 'a');
      good(a);
      a.assign('B@1', null, BAD);
      a.reboot(() => false);
    },
    { assigned: 'B@1', error: E1 },
    2,
  ],
  // A kubelet requires a second, manual restart.
  [
    44,
    'checkpoint lost and fetched again',
    (a) => {
      a.assign('A@1', 'a');
      a.reboot(() => false);
      a.assign('A@1', 'a');
    },
    { assigned: 'A@1', active: 'A@1' },
    3,
  ],
];

describe("the agent in the kubelet's scenarios", () => {
  it.each(SCENARIOS)('%i. %s', (_, __, play, status, restarts) => {
    const agent = testAgent();
    play(agent);
    expect(agent.status()).toEqual(status);
    expect(agent.restarts).toBe(restarts);
  });

  it('20. a hundred changes between two configurations', () => {
    const agent = testAgent();
    for (let i = 0; i < 100; i++) agent.assign(i % 2 === 0 ? 'A@1' : 'B@1', i % 2 === 0 ? 'a' : 'b');
    expect(agent.status()).toEqual({ assigned: 'B@1', active: 'B@1' });
    expect(agent.restarts).toBe(100);
    expect(agent.state.rejected).toEqual([]);
  });

  it('49. one Event for each change', () => {
    const agent = testAgent();
    agent.assign('A@1', 'a');
    agent.unassign();
    const path = '/api/v1/namespaces/kube-system/configmaps/a';
    expect(agent.announced).toEqual([
      `KubeletConfigChanged: Kubelet restarting to use ${path}, UID: uid-a, ResourceVersion: 1, KubeletConfigKey: kubelet`,
      'KubeletConfigChanged: Kubelet restarting to use local config',
    ]);
  });
});
