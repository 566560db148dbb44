import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../src/base/json.ts';
import { fieldDrift } from '../../../src/fleet/drift/drift.ts';
import type { HistoryEntry } from '../../../src/fleet/history/host-history.ts';
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

  describe('after an undo', () => {
    const entry = (command: string, before: number, after: number, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
      ...{ id: 'x', run: '0a1b2c3d-run', time: '2026-03-01T12:00:00.000Z', operator: 'alice@laptop', command, result: 'changed' },
      ...{ fields: [{ field: 'maxPods', before, after }], changes: [], ...more },
    });
    const APPLY = entry('apply', 110, 60, { run: '11111111-run', operator: 'bob@ws1' });
    const UNDO = entry('undo', 60, 110);
    const change = (before: number, after: number): FieldChange => ({ field: 'maxPods', before, after, impact: 'safe' });

    it.each<[string, readonly HistoryEntry[], FieldChange, string | null]>([
      ['says that the change was undone', [APPLY, UNDO], change(110, 60), 'undone'],
      ['says so after two more', [APPLY, UNDO, entry('undo', 110, 60), UNDO], change(110, 60), 'undone'],
      ['blames the host that was changed since', [APPLY, UNDO], change(77, 60), 'host'],
      ['does not say so for another wanted value', [APPLY, UNDO], change(110, 80), 'cluster'],
      ['does not say so for an undo that was undone', [APPLY, UNDO, entry('undo', 110, 60)], change(60, 110), 'cluster'],
      ['does not say so for one that was rolled back', [APPLY, { ...UNDO, result: 'rolled-back' }], change(110, 60), 'host'],
    ])('%s', (_, history, field, expected) => {
      expect(fieldDrift([field], [], { history })[0]?.changed).toBe(expected);
    });

    it('names the operator, time and run of the undo', () => {
      const undo = { operator: 'alice@laptop', time: '2026-03-01T12:00:00.000Z', run: '0a1b2c3d-run', id: 'x' };
      expect(fieldDrift([change(110, 60)], [], { history: [APPLY, UNDO] })[0]?.undo).toEqual(undo);
    });
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
