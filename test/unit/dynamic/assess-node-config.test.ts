import { describe, expect, it } from 'vitest';
import { assessNodeConfig } from '../../../src/dynamic/status/assess-node-config.ts';
import type { ConfigEvent } from '../../../src/dynamic/status/config-event.ts';
import { readNodeConfig } from '../../../src/dynamic/status/node-config.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  type ConfigIdentity,
  formatConfigSource,
  formatConfigStatus,
  formatSourceAnnotation,
  LOCAL_STATUS,
} from '../../../src/kubelet/layers/config-source.ts';

const at = (minutes: number): Date => new Date(Date.parse('2030-01-01T00:00:00Z') + minutes * 60_000);
const identity = (name: string): ConfigIdentity => ({
  namespace: 'ns',
  name,
  kubeletConfigKey: 'kubelet',
  uid: `uid-${name}`,
  resourceVersion: '7',
});
const A = identity('a');
const B = identity('b');
const restartFor = (target: ConfigIdentity | null, minutes: number): ConfigEvent => ({ at: at(minutes), identity: target, message: '' });

interface Reported {
  readonly assigned: ConfigIdentity | null;
  readonly status: ConfigIdentity | null;
  readonly isReady?: boolean;
  /** Time of the last heartbeat, in minutes. */
  readonly heartbeat?: number;
}

function validate({ assigned, status, isReady = true, heartbeat = 0 }: Reported, event: ConfigEvent | null, now: number) {
  const config = { ...LOCAL_STATUS, assigned: status, active: status };
  const ready = { type: 'Ready', status: isReady ? 'True' : 'Unknown', lastHeartbeatTime: at(heartbeat).toISOString() };
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1' },
    spec: assigned === null ? {} : { configSource: formatConfigSource(assigned) },
    status: { conditions: [ready], config: formatConfigStatus(config), nodeInfo: { kubeletVersion: 'v1.21.14' } },
  };
  return assessNodeConfig(readNodeConfig(node), event, at(now));
}

describe('the state of a node whose kubelet reports its own configuration', () => {
  it('waits for a new status after the kubelet announced a restart', () => {
    const verdict = validate({ assigned: A, status: A }, restartFor(B, 10), 10.5);
    expect(verdict).toMatchObject({
      state: 'waiting',
      why: 'the kubelet restarted at 2030-01-01T00:10:00Z to use ns/b/kubelet@7 and has not reported since',
    });
    expect(validate({ assigned: null, status: null }, restartFor(B, 10), 10.5).state).toBe('waiting');
  });

  it('is looping when no new status comes', () => {
    expect(validate({ assigned: A, status: A }, restartFor(B, 10), 11.5)).toMatchObject({ state: 'looping' });
  });

  it('is accepted when the status names the configuration of the restart', () => {
    expect(validate({ assigned: B, status: B }, restartFor(B, 10), 10.5).state).toBe('trial');
    expect(validate({ assigned: A, status: A }, null, 10.5).state).toBe('trial');
  });

  it('does not blame a payload after the kubelet reported without it', () => {
    // Repaired at 12, healthy until 30; then it fails for another reason.
    const later = validate({ assigned: null, status: null, isReady: false, heartbeat: 30 }, restartFor(B, 10), 40);
    expect(later).toMatchObject({ state: 'local', why: expect.stringContaining('Ready is Unknown') });
  });
});

describe('the state of a node whose agent reports a field that a drop-in file overrides', () => {
  const OVERRIDDEN = 'maxPods (desired 50, running 33) is overridden by /etc/kubernetes/kubelet.conf.d/50-pods.conf:3';
  const assess = (reason: string, message: string, lastKnownGood: ConfigIdentity | null) => {
    const node = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'n1',
        annotations: {
          [CONFIG_SOURCE_ANNOTATION]: formatSourceAnnotation(A),
          [CONFIG_STATUS_ANNOTATION]: JSON.stringify(formatConfigStatus({ ...LOCAL_STATUS, assigned: A, active: A, lastKnownGood })),
        },
      },
      status: {
        conditions: [
          { type: 'Ready', status: 'True' },
          { type: 'KubeletConfigOk', status: 'True', reason, message },
        ],
        nodeInfo: { kubeletVersion: 'v1.36.2' },
      },
    };
    return assessNodeConfig(readNodeConfig(node), null, at(0));
  };

  it('has the message of the agent, in trial and afterwards', () => {
    expect(assess('Trial', `in trial: ${OVERRIDDEN}`, null)).toMatchObject({ state: 'trial', why: `in trial: ${OVERRIDDEN}` });
    expect(assess('Good', `verified: ${OVERRIDDEN}`, A)).toMatchObject({ state: 'good', why: `verified: ${OVERRIDDEN}`, hint: null });
    expect(assess('Good', 'verified: kubeAPIQPS from 50 to 9', A)).toMatchObject({ state: 'good', why: null });
  });
});
