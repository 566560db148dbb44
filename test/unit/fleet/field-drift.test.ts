import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../src/base/json.ts';
import { fieldDrift } from '../../../src/fleet/drift/drift.ts';
import type { Change } from '../../../src/host/plan/change.ts';
import type { FieldChange } from '../../../src/host/plan/impact.ts';
import { encodeNodeSettings, NO_SETTINGS, NODE_SETTINGS_PATH } from '../../../src/kubeadm/node-settings/node-settings.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { decodeDeclaredFields } from '../../../src/kubelet/documents/decode.ts';

describe('the drift of a field', () => {
  it('has the running value of a feature gate and of a threshold', () => {
    const changes: readonly FieldChange[] = [
      { field: 'featureGates[NodeSwap]', before: false, after: true, impact: 'new-pods-only' },
      { field: 'evictionHard[memory.available]', before: '100Mi', after: '200Mi', impact: 'new-pods-only' },
    ];
    const running = new Map<string, Json>([
      ['featureGates.NodeSwap', false],
      ['evictionHard[memory.available]', '50Mi'],
    ]);
    expect(fieldDrift(changes, [], { running }).map((one) => one.running)).toEqual([false, '50Mi']);
  });

  it('names no side that changed without a record of the field', () => {
    const [drift] = fieldDrift([{ field: 'maxPods', before: 110, after: 90, impact: 'new-pods-only' }], [], { history: [] });
    expect(drift?.changed).toBeNull();
  });

  it.each<[string, JsonObject, 'host' | null]>([
    ['blames the host for a declared field', { maxPods: 90 }, 'host'],
    ['names no side for a field that another layer sets', { maxPods: 70 }, null],
    ['names no side for a field that the file does not declare', { podPidsLimit: 90 }, null],
  ])('%s without a record if the fleet file is unchanged', (_, declared, changed) => {
    const [drift] = fieldDrift([{ field: 'maxPods', before: 110, after: 90, impact: 'new-pods-only' }], [], { history: [], declared });
    expect(drift?.changed).toBe(changed);
  });

  it.each<[string, readonly string[]]>([
    ['of one element', ['10.0.0.10']],
    ['that is empty', []],
  ])('compares a declared list %s as a whole', (_, list) => {
    const change = { field: 'clusterDNS', before: ['10.0.0.9'], after: list, impact: 'new-pods-only' } as const;
    const [drift] = fieldDrift([change], [], { history: [], declared: { clusterDNS: list } });
    expect(drift?.changed).toBe('host');
  });

  it('compares the declared value as the kubelet reads it', async () => {
    const catalogue = await loadCatalogue();
    const settings = {
      ...NO_SETTINGS,
      overlays: [{ source: 'f', content: { syncFrequency: '60s', systemReserved: { memory: '1024Mi' } } }],
    };
    const before = { content: encodeNodeSettings(settings), mode: 0o600, owner: 'root:root' };
    const saved: Change = {
      ...{ kind: 'write-file', path: NODE_SETTINGS_PATH, content: '', mode: 0o600, owner: 'root:root' },
      ...{ before, action: 'update', reason: 'differs' },
    };
    const change = { field: 'syncFrequency', before: '1m0s', after: '2m0s', impact: 'safe' } as const;
    const decode = (declared: JsonObject) => decodeDeclaredFields(declared, { catalogue, minor: 36 });
    expect(fieldDrift([change], [saved], { decode })[0]?.changed).toBe('fleet file');
    expect(fieldDrift([{ ...change, before: '3m0s', after: '1m0s' }], [saved], { decode })[0]?.changed).toBe('host');
  });
});
