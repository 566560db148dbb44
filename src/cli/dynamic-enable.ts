import type { ExitCode } from '../base/errors.ts';
import {
  type DynamicDisableRequest as DisableRequest,
  type DynamicEnableRequest as EnableRequest,
  openDynamicDisable,
  openDynamicEnable,
} from '../fleet/use-cases/open-dynamic-enable.ts';
import { runOpened } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { PlanRequest } from './show-plan.ts';

export interface DynamicDisableRequest extends DisableRequest {
  readonly plan: PlanRequest;
}

export interface DynamicEnableRequest extends EnableRequest {
  readonly plan: PlanRequest;
}

/** `dynamic enable HOST...`. */
export function runDynamicEnable(services: Services, request: DynamicEnableRequest): Promise<ExitCode> {
  return runOpened(services, request.plan, { title: 'dynamic enable', open: (reporter) => openDynamicEnable(services, request, reporter) });
}

/** `dynamic disable HOST...`. */
export function runDynamicDisable(services: Services, request: DynamicDisableRequest): Promise<ExitCode> {
  return runOpened(services, request.plan, {
    title: 'dynamic disable',
    open: (reporter) => openDynamicDisable(services, request, reporter),
  });
}
