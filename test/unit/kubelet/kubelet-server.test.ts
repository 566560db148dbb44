import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/core/json.ts';
import { isConfigzFineGrained } from '../../../src/core/kubelet/kubelet-server.ts';

describe('isConfigzFineGrained', () => {
  it.each<[boolean, number, JsonObject]>([
    [true, 36, {}],
    [true, 33, {}],
    [false, 32, {}],
    [false, 32, { featureGates: { KubeletFineGrainedAuthz: true } }],
    [false, 35, { featureGates: { KubeletFineGrainedAuthz: false } }],
    [true, 36, { featureGates: { KubeletFineGrainedAuthz: false } }],
    [false, 36, { authentication: { webhook: { enabled: false } } }],
    [true, 36, { authentication: { webhook: { enabled: true } } }],
    [false, 36, { enableServer: false }],
  ])('is %s of 1.%i with %j', (expected, minor, config) => {
    expect(isConfigzFineGrained(config, minor)).toBe(expected);
  });
});
