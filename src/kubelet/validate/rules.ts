import { ALLOCATABLE_RULES } from './allocatable-rules.ts';
import { BOUND_RULES } from './bound-rules.ts';
import { DEPRECATION_RULES } from './deprecation-rules.ts';
import { DIRECTORY_RULES } from './directory-rules.ts';
import { ENUM_RULES } from './enum-rules.ts';
import { GATED_FIELD_RULES } from './gate-rules.ts';
import { IMAGE_RULES } from './image-rules.ts';
import { LOGGING_RULES } from './logging-rules.ts';
import { NUMBER_RULES } from './number-rules.ts';
import { RESOURCE_RULES } from './resource-rules.ts';
import type { Rule } from './rule.ts';
import { SHUTDOWN_RULES } from './shutdown-rules.ts';
import { EVICTION_ADVICE_RULES, EVICTION_STARTUP_RULES } from './startup-eviction.ts';
import { MANAGER_STARTUP_RULES } from './startup-managers.ts';
import { RESERVATION_STARTUP_RULES } from './startup-reservations.ts';
import { IGNORED_VALUE_RULES, SERVING_STARTUP_RULES } from './startup-serving.ts';
import { SYSCTL_RULES, SYSCTL_STARTUP_RULES } from './sysctl-rules.ts';
import { TAINT_RULES } from './taint-rules.ts';

/**
 * Rules of the kubelet's validation after decoding, for all minors from 1.11, and DIRECTORY_RULES.
 * @see kubernetes/kubernetes pkg/kubelet/apis/config/validation (1.11 to 1.37)
 */
export const VALIDATION_RULES: readonly Rule[] = [
  ...NUMBER_RULES,
  ...ENUM_RULES,
  ...GATED_FIELD_RULES,
  ...IMAGE_RULES,
  ...SHUTDOWN_RULES,
  ...ALLOCATABLE_RULES,
  ...RESOURCE_RULES,
  ...TAINT_RULES,
  ...SYSCTL_RULES,
  ...LOGGING_RULES,
  ...DIRECTORY_RULES,
];

/** Rules that the kubelet applies only after accepting the file, as far as the host does not matter. */
export const STARTUP_RULES: readonly Rule[] = [
  ...EVICTION_STARTUP_RULES,
  ...RESERVATION_STARTUP_RULES,
  ...MANAGER_STARTUP_RULES,
  ...SERVING_STARTUP_RULES,
  ...SYSCTL_STARTUP_RULES,
];

/** Rules for settings that work, but not as intended or not for long. */
export const ADVICE_RULES: readonly Rule[] = [...IGNORED_VALUE_RULES, ...EVICTION_ADVICE_RULES, ...DEPRECATION_RULES, ...BOUND_RULES];
