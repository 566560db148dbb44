import { ASSIGNMENTS } from './assignments.ts';
import { FAILURES, PAYLOADS } from './failures.ts';
import { IN_PLACE, LAST_KNOWN_GOOD } from './last-known-good.ts';
import { PERMISSIONS } from './permissions.ts';
import type { NativeScenario } from './scenario.ts';

/** What kubelets 1.11 to 1.23 do with a configuration from the API server, run with the stand-in and with a real one. */
export const NATIVE_SCENARIOS: readonly NativeScenario[] = [
  ...ASSIGNMENTS,
  ...LAST_KNOWN_GOOD,
  ...IN_PLACE,
  ...PAYLOADS,
  ...FAILURES,
  ...PERMISSIONS,
];
