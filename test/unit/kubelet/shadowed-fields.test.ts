import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { addLayer, NO_LAYERS } from '../../../src/kubelet/layers.ts';
import { loadCatalogue } from '../../../src/kubelet/load-catalogue.ts';
import { shadowedFields } from '../../../src/kubelet/shadowed-fields.ts';

const catalogue = await loadCatalogue();
const shadowed = (flag: string, value: string, config: JsonObject) => {
  const layered = addLayer(NO_LAYERS, { result: config, originOf: () => ({ layer: 'cluster', source: 'init.yaml' }) });
  return shadowedFields([{ name: flag, value }], layered, 36, catalogue).map(({ message }) => message);
};
/** A decoded object, without a prototype. */
const taint = Object.assign(Object.create(null), { key: 'a', effect: 'NoSchedule' }) as JsonObject;

describe('flags that override a field of the file', () => {
  it.each<[string, string, JsonObject, boolean]>([
    ['max-pods', '50', { maxPods: 40 }, true],
    ['max-pods', '50', { maxPods: 50 }, false],
    ['cluster-dns', '10.0.0.1,10.0.0.2', { clusterDNS: ['10.0.0.1', '10.0.0.2'] }, false],
    ['cluster-dns', '10.0.0.1', { clusterDNS: ['10.0.0.1', '10.0.0.2'] }, true],
    ['register-with-taints', '', { registerWithTaints: [taint] }, true],
    ['v', '5', { maxPods: 5 }, false],
  ])('--%s=%s over %j: %s', (flag, value, config, wins) => {
    const [message] = shadowed(flag, value, config);
    if (wins) expect(message).toContain(`--${flag}=${value} on the kubelet's command line overrides ${Object.keys(config)[0]}`);
    else expect(message).toBeUndefined();
  });
});
