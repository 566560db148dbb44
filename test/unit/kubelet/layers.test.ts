import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { addLayer, leavesOf, mergeConfig, NO_LAYERS, type Origin, originTexts } from '../../../src/kubelet/layers/layers.ts';

const from =
  (layer: Origin['layer'], source = 'here') =>
  (): Origin => ({ layer, source });

describe('leavesOf', () => {
  it.each<[JsonObject, Record<string, unknown>]>([
    [{}, {}],
    [{ maxPods: 5 }, { maxPods: 5 }],
    [{ a: { b: { c: null } } }, { 'a.b.c': null }],
    [
      { clusterDNS: ['10.96.0.10'], crashLoopBackOff: {} },
      { clusterDNS: ['10.96.0.10'], crashLoopBackOff: {} },
    ],
    [{ evictionHard: { 'memory.available': '100Mi' } }, { 'evictionHard[memory.available]': '100Mi' }],
    [{ 'odd.key': { x: 1 } }, { '[odd.key].x': 1 }],
  ])('%j', (config, leaves) => {
    expect(Object.fromEntries(leavesOf(config))).toEqual(leaves);
  });
});

describe('mergeConfig', () => {
  it.each<[JsonObject, JsonObject, JsonObject]>([
    [{ a: 1 }, { b: 2 }, { a: 1, b: 2 }],
    [{ a: { x: 1, y: 1 } }, { a: { y: 2 } }, { a: { x: 1, y: 2 } }],
    [{ a: [1, 2] }, { a: [3] }, { a: [3] }],
    [{ a: { x: 1 } }, { a: null }, { a: null }],
    [{ a: 1 }, { a: { x: 1 } }, { a: { x: 1 } }],
    [{ a: { x: 1 } }, { a: {} }, { a: { x: 1 } }],
    [{ a: [1] }, { a: { x: 1 } }, { a: { x: 1 } }],
  ])('%j and %j', (base, overlay, expected) => {
    expect(mergeConfig(base, overlay)).toEqual(expected);
  });

  const config = fc.letrec<{ object: JsonObject }>((tie) => ({
    object: fc.dictionary(
      fc.constantFrom('a', 'b', 'c'),
      fc.oneof({ depthSize: 'small' }, fc.integer(), fc.constant(null), fc.array(fc.integer()), tie('object')),
    ),
  })).object;

  it('has every leaf of the overlay, and only values of its inputs', () => {
    fc.assert(
      fc.property(config, config, (base, overlay) => {
        const merged = leavesOf(mergeConfig(base, overlay));
        const [below, above] = [leavesOf(base), leavesOf(overlay)];
        for (const [path, value] of above) if (JSON.stringify(value) !== '{}') expect(merged.get(path)).toEqual(value);
        for (const [path, value] of merged) expect([below.get(path), above.get(path)]).toContainEqual(value);
      }),
    );
  });

  it('changes neither input', () => {
    fc.assert(
      fc.property(config, config, (base, overlay) => {
        const before = JSON.stringify([base, overlay]);
        mergeConfig(base, overlay);
        expect(JSON.stringify([base, overlay])).toBe(before);
      }),
    );
  });
});

describe('addLayer', () => {
  const defaults = addLayer(NO_LAYERS, {
    result: { cgroupDriver: 'systemd', clusterDNS: ['10.96.0.10'] },
    originOf: from('kubeadm default', 'kubeadm 1.36'),
  });
  const cluster = addLayer(defaults, {
    overlay: { cgroupDriver: 'systemd', clusterDNS: ['10.1.0.10'], maxPods: 5 },
    originOf: from('cluster', 'init.yaml:12:3'),
  });

  it('records the history of each value', () => {
    expect(originTexts(cluster)).toEqual({
      cgroupDriver: 'cluster: init.yaml:12:3',
      clusterDNS: 'cluster: init.yaml:12:3',
      maxPods: 'cluster: init.yaml:12:3',
    });
    expect(cluster.history.get('clusterDNS')?.map(({ origin, value }) => [origin.layer, value])).toEqual([
      ['kubeadm default', ['10.96.0.10']],
      ['cluster', ['10.1.0.10']],
    ]);
  });

  it('does not record a layer that repeats a value without setting it', () => {
    const patched = addLayer(defaults, { result: { ...defaults.config }, originOf: from('patch') });
    expect(originTexts(patched)).toEqual(originTexts(defaults));
  });

  it('records removed fields without listing them', () => {
    const taken = addLayer(cluster, {
      result: { cgroupDriver: 'systemd', clusterDNS: ['10.1.0.10'] },
      originOf: from('patch', 'p.yaml'),
    });
    expect(taken.history.get('maxPods')?.at(-1)).toEqual({ origin: { layer: 'patch', source: 'p.yaml' }, value: undefined });
    expect(originTexts(taken)).not.toHaveProperty('maxPods');
  });

  it('does not change earlier layers', () => {
    addLayer(defaults, { result: { maxPods: 1 }, originOf: from('set') });
    expect(defaults.history.has('maxPods')).toBe(false);
  });
});
