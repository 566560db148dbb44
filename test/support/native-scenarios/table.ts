import { ASSIGNMENTS } from './assignments.ts';
import { FAILURES, PAYLOADS } from './failures.ts';
import { IN_PLACE, LAST_KNOWN_GOOD } from './last-known-good.ts';
import { PERMISSIONS } from './permissions.ts';
import type { NativeScenario } from './scenario.ts';

/**
 * The behaviour of kubelets 1.11 to 1.23 with a configuration from the API server, tested with a simulated
 * and a real kubelet.
 */
export const NATIVE_SCENARIOS: readonly NativeScenario[] = [
  ...ASSIGNMENTS,
  ...LAST_KNOWN_GOOD,
  ...IN_PLACE,
  ...PAYLOADS,
  ...FAILURES,
  ...PERMISSIONS,
];
