import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { addLayer, type LayeredConfig, type LayerName, NO_LAYERS } from '../../../src/kubelet/layers/layers.ts';
import { describeOverridden, findOverrides, isSetBy } from '../../../src/kubelet/layers/overridden-fields.ts';

const DEFAULTS = { maxPods: 110, serializeImagePulls: true };
/** A file over the defaults. */
const config = (own: JsonObject, layer: LayerName = 'config file'): LayeredConfig => {
  const bottom = addLayer(NO_LAYERS, { overlay: DEFAULTS, originOf: () => ({ layer: 'kubelet default', source: '' }) });
  return addLayer(bottom, { overlay: own, originOf: () => ({ layer, source: '' }) });
};
const find = (
  before: JsonObject,
  after: JsonObject,
  running: JsonObject,
  ...[sets]: readonly Parameters<typeof findOverrides>[0]['sets'][]
) => {
  const { fields, unknown } = findOverrides({ before: config(before), after: config(after), running: config(running), sets });
  return { fields: fields.map(({ path, isChanged }) => `${path}${isChanged ? ' changes' : ''}`), unknown };
};

describe('the fields that a ConfigMap overrides', () => {
  it.each<[string, Parameters<typeof find>, string[]]>([
    ['a changed field with another value', [{}, { maxPods: 20 }, { maxPods: 33 }, null], ['maxPods changes']],
    ['a changed field with the same value', [{}, { maxPods: 33 }, { maxPods: 33 }, null], []],
    ['a removed field', [{ maxPods: 20 }, {}, { maxPods: 33 }, null], ['maxPods changes']],
    ['a field that the file sets already', [{ maxPods: 20 }, { maxPods: 20 }, { maxPods: 33 }, null], ['maxPods']],
    ['a field that only the ConfigMap sets', [{ maxPods: 20 }, { maxPods: 20 }, { maxPods: 20, registryPullQPS: 7 }, null], []],
    ['a default that a complete ConfigMap restores', [{}, { maxPods: 20 }, {}, null], ['maxPods changes']],
    [
      'parts of a map',
      [
        {},
        { evictionHard: { 'memory.available': '5%', 'imagefs.available': '1%' } },
        { evictionHard: { 'memory.available': '1Gi' } },
        null,
      ],
      ['evictionHard[imagefs.available] changes', 'evictionHard[memory.available] changes'],
    ],
    ['a list, as a whole', [{}, { clusterDNS: ['10.0.0.1'] }, { clusterDNS: ['10.0.0.1', '10.0.0.2'] }, null], ['clusterDNS changes']],
    ['a field that an overlay sets', [{}, { maxPods: 20 }, { maxPods: 33 }, ['maxPods']], ['maxPods changes']],
    ['a field that an overlay leaves to the file', [{}, { maxPods: 20 }, { serializeImagePulls: false }, ['serializeImagePulls']], []],
  ])('%s', (_, input, fields) => {
    expect(find(...input)).toEqual({ fields, unknown: [] });
  });

  it('are unknown if an earlier agent has not recorded the fields, and the value could be that of the file', () => {
    expect(find({ maxPods: 10 }, { maxPods: 20 }, { maxPods: 10 }, undefined)).toEqual({ fields: [], unknown: ['maxPods'] });
    expect(find({ maxPods: 10 }, { maxPods: 20 }, { maxPods: 33 }, undefined)).toEqual({ fields: ['maxPods changes'], unknown: [] });
  });

  it('are not those of a flag or a drop-in, which override the file and the ConfigMap', () => {
    const by = (layer: LayerName, maxPods: number) => config({ maxPods }, layer);
    const flag = { before: by('flag', 40), after: by('flag', 40), running: by('flag', 40), sets: null };
    expect(findOverrides(flag)).toEqual({ fields: [], unknown: [] });
  });

  it('include members of a map that the overlay replaces', () => {
    expect(isSetBy(['evictionHard'], 'evictionHard[memory.available]')).toBe(true);
    expect(isSetBy(['evictionHard[memory.available]'], 'evictionHard')).toBe(true);
    expect(isSetBy(['evictionHard[memory.available]'], 'evictionHardX')).toBe(false);
    expect(isSetBy(['maxPods'], 'podPidsLimit')).toBe(false);
  });

  it('are shown with both values, except those that can contain credentials', () => {
    const field = { path: 'maxPods', desired: 20, running: undefined, isChanged: true };
    expect(describeOverridden(field)).toBe('maxPods (desired 20, running unset)');
    expect(describeOverridden({ ...field, path: 'staticPodURLHeader.Authorization', desired: ['Bearer secret'] })).toBe(
      'staticPodURLHeader.Authorization',
    );
  });
});
