import { describe, expect, it } from 'vitest';
import { parseReport } from '../../../../src/dynamic/agent/config-report.ts';
import { patchesFor } from '../../../../src/dynamic/agent/report-status.ts';
import { type AgentState, newAgentState } from '../../../../src/dynamic/agent/state.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { DEFAULT_TIMING, EMPTY_HEALTH_HISTORY, type HealthHistory } from '../../../../src/kubelet/health/assess.ts';
import { CONFIG_REPORT_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';

const START = Date.parse('2030-01-01T00:00:00Z');
const TRIAL_MS = 600_000;
const PAYLOAD = {
  identity: { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '1', kubeletConfigKey: 'kubelet' },
  hash: 'a'.repeat(64),
  changes: [],
};

/** A trial that was observed for some seconds, with an amount of healthy time. */
function trial(seconds: number, healthySeconds: number, watch: Partial<HealthHistory> = {}): AgentState {
  const observed = {
    ...EMPTY_HEALTH_HISTORY,
    wasHealthy: true,
    lastAt: START + seconds * 1000,
    healthyMs: healthySeconds * 1000,
    ...watch,
  };
  return { ...newAgentState(START), phase: 'trial', assigned: PAYLOAD, watch: observed };
}

/** Reports the states one after the other. @returns the end of the trial on the Node, and the number of requests, of each */
async function reported(states: readonly AgentState[]): Promise<readonly (readonly [string | null, number])[]> {
  const cluster = fakeCluster({ objects: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }] });
  const ref = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
  const results: (readonly [string | null, number])[] = [];
  for (const state of states) {
    const patches = patchesFor((await cluster.get(ref)) as KubeObject, state, new Date(state.watch.lastAt ?? START), {
      timing: { ...DEFAULT_TIMING, trialMs: TRIAL_MS },
      signersFile: null,
    });
    for (const { subresource, patch } of patches)
      await cluster.patch(ref, subresource === undefined ? 'merge' : 'strategic', patch, subresource === undefined ? {} : { subresource });
    const report = parseReport((await cluster.get(ref))?.metadata.annotations?.[CONFIG_REPORT_ANNOTATION]);
    results.push([report?.trialEnds ?? null, patches.length]);
  }
  return results;
}

describe('the end of a trial in the report of an agent', () => {
  it('is written once while the kubelet stays healthy', async () => {
    expect(await reported([trial(10, 0), trial(20, 10), trial(300, 290)])).toEqual([
      ['2030-01-01T00:10:10Z', 2],
      ['2030-01-01T00:10:10Z', 0],
      ['2030-01-01T00:10:10Z', 0],
    ]);
  });

  it('is written again when it moves by more than 15 s', async () => {
    const ends = await reported([trial(10, 0), trial(24, 0), trial(26, 0)]);
    expect(ends.map(([end, requests]) => [end, requests])).toEqual([
      ['2030-01-01T00:10:10Z', 2],
      ['2030-01-01T00:10:10Z', 0],
      ['2030-01-01T00:10:26Z', 1],
    ]);
  });

  it('is removed while the trial is paused, and after the trial', async () => {
    const { watch } = trial(700, 690);
    const good: AgentState = { ...newAgentState(START), phase: 'good', assigned: PAYLOAD, notObservedReason: null, watch };
    const ends = await reported([trial(10, 0), trial(60, 20, { unproven: 'configz cannot be read' }), trial(70, 30), good]);
    expect(ends.map(([end]) => end)).toEqual(['2030-01-01T00:10:10Z', null, '2030-01-01T00:10:40Z', null]);
  });

  it('is unknown before the kubelet was healthy, and in the report of an earlier version', async () => {
    expect((await reported([trial(10, 0, { wasHealthy: false })]))[0]?.[0]).toBeNull();
    expect(parseReport('{"at":"x","message":"","observed":true,"reason":"Trial","status":"True"}')).toMatchObject({ trialEnds: null });
    expect(parseReport('{"at":"x","message":"","reason":"Trial","status":"True","trialEnds":"soon"}')).toMatchObject({ trialEnds: null });
  });
});
