import { describe, expect, it } from 'vitest';
import {
  type AgentReading,
  checkpointUses,
  planAgentRepair,
  reportAgent,
  unneededCheckpoints,
} from '../../../../src/dynamic/agent/agent-report.ts';
import { type AgentState, newAgentState } from '../../../../src/dynamic/agent/state.ts';
import { parseUnitState, type UnitState } from '../../../../src/host/facts/unit.ts';

const unit = (activeState: string, subState = 'running'): UnitState => {
  const read = parseUnitState(`LoadState=loaded\nActiveState=${activeState}\nSubState=${subState}\nUnitFileState=enabled\n`);
  if (read === null) throw new Error('no unit');
  return read;
};
const hash = (letter: string): string => letter.repeat(64);
const payload = (letter: string) => ({
  identity: { namespace: 'n', name: letter, uid: 'u', resourceVersion: '1', kubeletConfigKey: 'kubelet' },
  hash: hash(letter),
  changes: [],
});
const GOOD: AgentState = { ...newAgentState(0), phase: 'good', assigned: payload('a'), active: payload('a'), lastKnownGood: payload('a') };
const NOW = 2_000_000_000;
const checkpoint = (letter: string, isWhole = true, age = 7200) => ({
  hash: hash(letter),
  source: `n/${letter}/kubelet@1`,
  files: ['kubelet.yaml'],
  keys: ['kubelet'],
  isWhole,
  writtenAt: NOW - age,
});
const WELL: AgentReading = {
  directory: '/d',
  now: NOW,
  state: GOOD,
  damaged: [],
  access: [],
  checkpoints: [checkpoint('a'), checkpoint('b')],
  pointer: hash('a'),
  hasPointerFile: true,
  hasDropIn: true,
  agent: unit('active'),
  kubelet: unit('active'),
  healthz: { status: 200, body: 'ok' },
  runs: hash('a'),
  identity: { state: 'usable', source: 'x', commonName: 'system:node:n', notAfter: null, server: null },
};
const codes = (reading: Partial<AgentReading>): readonly string[] => reportAgent({ ...WELL, ...reading }).map(({ code }) => code);
const repair = (reading: Partial<AgentReading>): readonly string[] =>
  planAgentRepair({ ...WELL, ...reading }).map(
    (change) => `${change.kind} ${'path' in change ? change.path : 'unit' in change ? change.unit : ''}`,
  );

describe('a host with an agent', () => {
  it.each([
    ['CLUSTER_UNAUTHORIZED', 'read Node', /certs renew-kubelet --force .*--node-name/],
    ['CLUSTER_FORBIDDEN', 'read ConfigMap', /dynamic enable/],
    ['CLUSTER_FORBIDDEN', 'write Node/status', /--authorization-mode=Node,RBAC/],
  ])('names the fix for %s to %s: only --force renews a refused certificate that has not expired', (code, request, hint) => {
    const access = [{ request, code, why: 'refused', since: 0 }];
    expect(reportAgent({ ...WELL, access }).map(({ hint }) => hint)).toEqual([expect.stringMatching(hint)]);
  });

  it.each<[string, Partial<AgentReading>, readonly string[], readonly string[]]>([
    ['is healthy', {}, [], []],
    ['is healthy without an assignment', { state: newAgentState(0), pointer: null, hasPointerFile: false, runs: 'local' }, [], []],
    [
      'has an agent that the API server refuses',
      { access: [{ request: 'read Node', code: 'CLUSTER_UNAUTHORIZED', why: 'Unauthorized', since: 0 }] },
      ['AGENT_REFUSED'],
      [],
    ],
    [
      'has a kubelet that keeps exiting',
      { kubelet: unit('activating', 'auto-restart'), runs: null },
      ['KUBELET_UNHEALTHY'],
      ['remove-file /d/active.env', 'restart-unit kubelet'],
    ],
    [
      'has an unhealthy kubelet',
      { healthz: { status: 500, body: '' } },
      ['KUBELET_UNHEALTHY'],
      ['remove-file /d/active.env', 'restart-unit kubelet'],
    ],
    [
      'has a kubelet that is unhealthy with its local configuration',
      { state: newAgentState(0), pointer: null, hasPointerFile: false, runs: 'local', healthz: { error: 'refused' } },
      ['KUBELET_UNHEALTHY'],
      ['restart-unit kubelet'],
    ],
    ['lost the active checkpoint', { checkpoints: [] }, ['CHECKPOINT_DAMAGED'], ['remove-file /d/active.env', 'restart-unit kubelet']],
    [
      'has a truncated checkpoint',
      { checkpoints: [checkpoint('a', false)] },
      ['CHECKPOINT_DAMAGED'],
      ['remove-file /d/active.env', 'restart-unit kubelet'],
    ],
    [
      'has a pointer to a missing checkpoint',
      { pointer: null, runs: 'local' },
      ['AGENT_POINTER_DAMAGED'],
      ['remove-file /d/active.env', 'restart-unit kubelet'],
    ],
    ['has an agent that does not run', { agent: unit('failed') }, ['AGENT_DOWN'], ['restart-unit kubeletadm-agent']],
    ['lost the drop-in', { hasDropIn: false }, ['AGENT_DROP_IN_MISSING'], []],
    ['lost one copy of the state', { damaged: ['/d/state-0.json'] }, ['AGENT_STATE_DAMAGED'], []],
    ['lost both copies of the state', { state: null, damaged: ['/d/state-0.json', '/d/state-1.json'] }, ['AGENT_STATE_DAMAGED'], []],
    ['runs another configuration', { runs: 'local' }, ['AGENT_NOT_IN_FORCE'], []],
    ['has no kubeconfig of a kubelet', { identity: { state: 'missing' } }, ['NODE_NO_CREDENTIALS'], []],
    ['has an expired certificate', { identity: { state: 'unusable', why: 'it expired' } }, ['NODE_NO_CREDENTIALS'], []],
    ['has a kubeconfig elsewhere', { identity: null }, [], []],
  ])('%s', (_, reading, found, fixed) => {
    expect(codes(reading)).toEqual(found);
    expect(repair(reading)).toEqual(fixed);
  });

  it('lists the uses of checkpoints, and unused checkpoints', () => {
    expect(checkpointUses(WELL, hash('a'))).toEqual(['assigned', 'active', 'last known good']);
    expect(checkpointUses(WELL, hash('b'))).toEqual([]);
    expect(unneededCheckpoints(WELL, 3600)).toEqual([hash('b')]);
    expect(unneededCheckpoints(WELL, 9000)).toEqual([]);
    expect(unneededCheckpoints({ ...WELL, runs: hash('b') }, 3600)).toEqual([]);
    // Without a state, all checkpoints may be in use.
    expect(unneededCheckpoints({ ...WELL, state: null }, 0)).toEqual([]);
  });
});
