import { describe, expect, it } from 'vitest';
import { AppError, formatProblem } from '../../../src/base/errors.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { addLayer, type LayerName, NO_LAYERS } from '../../../src/kubelet/layers/layers.ts';
import { checkNodeFields } from '../../../src/kubelet/validate/check-node-fields.ts';

const catalogue = await loadCatalogue();
const HEADER = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };

function problemsOf(fields: JsonObject, layer: LayerName = 'patch', minor = 36): string[] {
  const layered = addLayer(NO_LAYERS, { result: { ...HEADER, ...fields }, originOf: () => ({ layer, source: 'k.yaml' }) });
  try {
    checkNodeFields(layered, { minor, assumed: false, catalogue });
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    expect(error.exitCode).toBe(2);
    return error.problems.map(formatProblem);
  }
}

describe('checkNodeFields of a kubelet whose version is assumed', () => {
  const layered = (fields: JsonObject) =>
    addLayer(NO_LAYERS, { result: { ...HEADER, ...fields }, originOf: () => ({ layer: 'patch', source: 'k.yaml' }) });

  it('warns about values that the kubelet would reject', () => {
    const warnings = checkNodeFields(layered({ maxPods: -1 }), { minor: 36, assumed: true, catalogue });
    expect(warnings.map(({ code, field }) => [code, field])).toEqual([['KUBELET_OUT_OF_RANGE', 'maxPods']]);
  });

  it('refuses values that no kubelet can read', () => {
    const check = () => checkNodeFields(layered({ maxPods: 'x' }), { minor: 36, assumed: true, catalogue });
    expect(check).toThrow(expect.objectContaining({ code: 'CONFIG_WRONG_TYPE', exitCode: 2 }));
  });
});

describe('checkNodeFields', () => {
  it('accepts values that the kubelet accepts', () => {
    expect(problemsOf({ maxPods: 50, evictionHard: { 'memory.available': '5%' }, clusterDNS: ['10.96.0.10'] })).toEqual([]);
  });

  it('omits advice', () => {
    expect(problemsOf({ streamingConnectionIdleTimeout: '4h0m0s', clusterDNS: ['dns'] })).toEqual([]);
  });

  it('refuses values that the kubelet rejects, with their layer', () => {
    expect(problemsOf({ port: -1, featureGates: { Nope: true }, registerWithTaints: [{ key: 'a b' }] })).toEqual([
      'featureGates[Nope]: the feature gate "Nope" is unknown: a 1.36 kubelet does not start with an unknown gate (patch: k.yaml). Remove the gate. [KUBELET_UNKNOWN_GATE]',
      'port: must be a port from 1 to 65535, not -1 (patch: k.yaml) [KUBELET_OUT_OF_RANGE]',
      'registerWithTaints[0].key: "a b" is not a valid taint key (patch: k.yaml). Use up to 63 letters, digits, dots, dashes and underscores, optionally after a domain and a slash. [KUBELET_TAINT]',
    ]);
  });

  it('refuses values that the kubelet accepts but fails with at startup', () => {
    expect(problemsOf({ evictionHard: { 'memory.available': 'much' } }, 'set')).toEqual([
      'evictionHard[memory.available]: "much" is neither a quantity nor a percentage; the kubelet accepts the file but exits at startup (set: k.yaml) [KUBELET_START_EVICTION_VALUE]',
    ]);
  });

  it('validates by the minor version of the node', () => {
    const fields = { cgroupsPerQOS: false, enforceNodeAllocatable: ['none'] };
    expect(problemsOf(fields, 'host', 31)).toEqual([]);
    expect(problemsOf(fields, 'host', 30)).toHaveLength(1);
  });
});
