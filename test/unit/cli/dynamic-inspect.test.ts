import { expect, it } from 'vitest';
import { inspectedAgent } from '../../../src/cli/dynamic-inspect-agent.ts';
import { type AgentState, newAgentState } from '../../../src/dynamic/agent/state.ts';

const SYNC = { code: 'UNKNOWN_SOURCE', cause: 'invalid assignment: not valid JSON' } as const;
const PAYLOAD = {
  identity: { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '1', kubeletConfigKey: 'kubelet' },
  hash: 'a'.repeat(64),
  changes: [],
};
const LOCAL = newAgentState(0);
const GOOD: AgentState = { ...LOCAL, phase: 'good', assigned: PAYLOAD, active: PAYLOAD, lastKnownGood: PAYLOAD };

it.each<[string, AgentState, string]>([
  ['good', GOOD, 'state: good, for 2m'],
  ['not-synced while good', { ...GOOD, sync: SYNC }, `state: not-synced: ${SYNC.cause}; running: good, for 2m`],
  ['not-synced while local', { ...LOCAL, sync: SYNC }, `state: not-synced: ${SYNC.cause}; running: local, for 2m`],
  [
    'not-synced after a failed switch',
    { ...GOOD, switching: { id: 1, to: null, issue: 'no', failures: 1, againAt: 9 } },
    'state: not-synced: the kubelet could not be switched: no; phase: good, for 2m',
  ],
])('dynamic inspect shows the state of dynamic status: %s', (_, state, line) => {
  const reading = {
    ...{ directory: '/d', now: 120, state, damaged: [], access: [], checkpoints: [], pointer: null, hasPointerFile: false },
    ...{ hasDropIn: true, agent: null, kubelet: null, healthz: null, runs: null, identity: null },
  };
  const agent = { reading, kubeletVersion: 'v1.36.2', nodeName: 'n', healthzUrl: null };
  const { shown } = inspectedAgent({ host: 'h', assigner: null, agent }, agent, 'text');
  expect(shown.split('\n')).toContain(line);
});
