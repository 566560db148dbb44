import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { readRollout } from '../../../../src/rollouts/api/rollout.ts';

const CONFIG_MAP = { namespace: 'kubeletadm-system', name: 'edge-abc' };

function read(spec: JsonObject, name = 'edge') {
  return readRollout({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', metadata: { name }, spec });
}

function errorsOf(spec: JsonObject, name?: string): readonly string[] {
  const answer = read(spec, name);
  return 'errors' in answer ? answer.errors : [];
}

const VALID = { nodeSelector: {}, payload: { configMapRef: CONFIG_MAP } };

describe('readRollout', () => {
  it('fills in the defaults', () => {
    const answer = read(VALID);
    expect('rollout' in answer && answer.rollout.spec).toEqual({
      nodeSelector: {},
      payload: { configMapRef: { ...CONFIG_MAP, kubeletConfigKey: 'kubelet' } },
      strategy: {
        canary: { count: 1 },
        maxUnavailable: 1,
        maxFailures: 0,
        minReadySeconds: 30,
        until: 'Trial',
        allow: 'new-pods-only',
        drain: { force: false, timeoutSeconds: 600, settleSeconds: 120 },
      },
      paused: false,
      progressDeadlineSeconds: 900,
      onFailure: 'Stop',
      revisionHistoryLimit: 10,
      deletionPolicy: 'Leave',
    });
  });

  it.each<[string, JsonObject, string]>([
    ['no payload', { nodeSelector: {}, payload: {} }, 'spec.payload: exactly one of configMapRef and overlay is required'],
    [
      'two payloads',
      { nodeSelector: {}, payload: { configMapRef: CONFIG_MAP, overlay: {} } },
      'spec.payload: exactly one of configMapRef and overlay is required',
    ],
    [
      'an overlay with a header',
      { nodeSelector: {}, payload: { overlay: { kind: 'KubeletConfiguration' } } },
      'spec.payload.overlay: an overlay has fields of a KubeletConfiguration only, without apiVersion and kind',
    ],
    [
      'a limit of 0',
      { ...VALID, strategy: { maxUnavailable: 0 } },
      'spec.strategy.maxUnavailable: a number of at least 1, or a percentage from 1% to 100%',
    ],
    [
      'a limit of 101 %',
      { ...VALID, strategy: { maxUnavailable: '101%' } },
      'spec.strategy.maxUnavailable: a number of at least 1, or a percentage from 1% to 100%',
    ],
    [
      'In without values',
      { ...VALID, nodeSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
      'spec.nodeSelector.matchExpressions.0: values are required for In and NotIn, and not allowed for Exists and DoesNotExist',
    ],
    ['an unknown field', { ...VALID, pause: true }, 'spec: Unrecognized key: "pause"'],
  ])('refuses %s', (_, spec, error) => {
    expect(errorsOf(spec)).toEqual([error]);
  });

  it('refuses a name that is too long for the names of its ConfigMaps', () => {
    expect(errorsOf(VALID, 'a'.repeat(53))).toEqual(['metadata.name: metadata.name has at most 52 characters']);
    expect(errorsOf(VALID, 'a'.repeat(52))).toEqual([]);
  });
});
