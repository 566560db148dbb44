import { describe, expect, it } from 'vitest';
import { assessNodeConfig } from '../../../../src/dynamic/status/assess-node-config.ts';
import { readNodeConfig } from '../../../../src/dynamic/status/node-config.ts';
import { CONFIG_STATUS_ANNOTATION, formatConfigStatus } from '../../../../src/kubelet/layers/config-source.ts';
import { readRollout } from '../../../../src/rollouts/api/rollout.ts';
import { checkKey, type Observed, type ObservedNode, sourceText } from '../../../../src/rollouts/reconcile/observed.ts';
import { reconcile } from '../../../../src/rollouts/reconcile/reconcile.ts';

const NOW = new Date('2030-01-01T01:00:00Z');
const SOURCE = { namespace: 'kubeletadm-system', name: 'pods-1', kubeletConfigKey: 'kubelet' };

/** A Ready Node whose agent reports the local configuration. */
function observedNode(name: string, isHeld: boolean): ObservedNode {
  const status = JSON.stringify(formatConfigStatus({ assigned: null, active: null, lastKnownGood: null, error: null }));
  const since = '2030-01-01T00:00:00Z';
  const config = readNodeConfig({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, annotations: { [CONFIG_STATUS_ANNOTATION]: status }, creationTimestamp: since },
    status: {
      nodeInfo: { kubeletVersion: 'v1.36.2' },
      conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', lastTransitionTime: since }],
    },
  });
  const assessed = { config, verdict: assessNodeConfig(config, null, NOW) };
  return { name, assessed, labels: {}, createdAt: new Date(since), isHeld, isBusy: false, issue: null };
}

/** `n1` has failed, `n2` waits. */
function observed({ isHeld }: { readonly isHeld: boolean }): Observed {
  const failed = { name: 'n1', state: 'Failed', source: sourceText(SOURCE), since: '2030-01-01T00:10:00Z' };
  const read = readRollout({
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'KubeletConfigRollout',
    metadata: { name: 'pods', uid: 'u', generation: 1 },
    spec: { nodeSelector: {}, payload: { configMapRef: SOURCE }, strategy: { canary: { count: 0 }, maxFailures: 1 } },
    status: { updateRevision: 'pods-1', nodes: [failed] },
  });
  if (!('rollout' in read)) throw new Error(read.errors.join());
  const nodes = [observedNode('n1', isHeld), observedNode('n2', false)];
  return {
    rollout: read.rollout,
    nodes,
    revision: { name: 'pods-1', source: SOURCE },
    refusal: null,
    checks: new Map(nodes.map(({ assessed: { config } }) => [checkKey(config, SOURCE), { refusal: null, impact: null }])),
    previous: new Map(),
    now: NOW,
    localTime: NOW,
    attempt: null,
  };
}

describe('reconcile', () => {
  it.each([
    ['starts the next node after a failed one that is in service', false, ['n2']],
    ['counts a failed node that is still cordoned as unavailable, although it is Ready', true, []],
  ])('%s', (_, isHeld, started) => {
    expect(reconcile(observed({ isHeld })).assign.map(({ name }) => name)).toEqual(started);
  });
});
