import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/base/json.ts';
import { fieldDrift } from '../../../src/fleet/field-drift.ts';
import type { FieldChange } from '../../../src/host/plan/impact.ts';

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
});
