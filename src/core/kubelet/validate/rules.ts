import { ALLOCATABLE_RULES } from './allocatable-rules.ts';
import { GATED_FIELD_RULES } from './gate-rules.ts';
import { IMAGE_RULES } from './image-rules.ts';
import { LOGGING_RULES } from './logging-rules.ts';
import { NUMBER_RULES } from './number-rules.ts';
import { RESOURCE_RULES } from './resource-rules.ts';
import type { Rule } from './rule.ts';
import { SHUTDOWN_RULES } from './shutdown-rules.ts';
import { TAINT_RULES } from './taint-rules.ts';
import { WORD_RULES } from './word-rules.ts';

/**
 * What the kubelet refuses in a configuration it could decode, for all minors from 1.20 on.
 * @see kubernetes/kubernetes pkg/kubelet/apis/config/validation (1.20 to 1.36)
 */
export const VALIDATION_RULES: readonly Rule[] = [
  ...NUMBER_RULES,
  ...WORD_RULES,
  ...GATED_FIELD_RULES,
  ...IMAGE_RULES,
  ...SHUTDOWN_RULES,
  ...ALLOCATABLE_RULES,
  ...RESOURCE_RULES,
  ...TAINT_RULES,
  ...LOGGING_RULES,
];
