import { expect, it } from 'vitest';
import { type AgentCounters, countChange, NO_COUNTERS } from '../../../../src/dynamic/agent/agent-counters.ts';
import { renderAgentMetrics } from '../../../../src/dynamic/agent/http-endpoints.ts';
import type { AgentState } from '../../../../src/dynamic/agent/state.ts';
import { healthy, testAgent } from './support.ts';

/** An agent whose changes of state are counted, one by one. */
function countedAgent() {
  const agent = testAgent();
  let before: AgentState | null = null;
  let counters: AgentCounters = NO_COUNTERS;
  const send = agent.send;
  const count = (): void => {
    counters = countChange(counters, before, agent.state);
    before = agent.state;
  };
  count();
  agent.send = (event) => {
    const step = send(event);
    count();
    return step;
  };
  const counted = (): readonly string[] =>
    renderAgentMetrics(agent.state, counters, {})
      .split('\n')
      .filter((line) => /^kubeletadm_\w+_total\b.* [1-9]/.test(line));
  return { agent, counted };
}

it('counts trials, rollbacks by their signal, and rejections by their code', () => {
  const { agent, counted } = countedAgent();
  agent.assign('A@1', 'a');
  agent.run(700);
  expect(agent.state.phase).toBe('good');
  expect(counted()).toEqual(['kubeletadm_trials_total 1']);
  agent.assign('B@1', 'b');
  agent.run(60, (pointer) => healthy(pointer, { healthz: { ok: false, why: 'connection refused' } }));
  expect(agent.state.phase).toBe('fallen-back');
  expect(counted()).toEqual(['kubeletadm_trials_total 2', expect.stringMatching(/^kubeletadm_rollbacks_total\{signal="[\w-]+"\} 1$/)]);
  agent.assign('C@1', null, { refusal: { code: 'NOT_ALLOWED', cause: 'x' } });
  agent.run(5);
  expect(counted().at(-1)).toBe('kubeletadm_rejections_total{code="NOT_ALLOWED"} 1');
  expect(counted()).toHaveLength(3);
});

it('counts nothing when an agent starts in a trial', () => {
  const agent = testAgent();
  agent.assign('A@1', 'a');
  expect(countChange(NO_COUNTERS, null, agent.state)).toEqual(NO_COUNTERS);
  expect(renderAgentMetrics(agent.state, NO_COUNTERS, {})).toContain(
    `\nkubeletadm_config_phase_start_timestamp_seconds{phase="trial"} ${agent.state.since / 1000}\n`,
  );
});
