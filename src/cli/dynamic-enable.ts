import type { ExitCode } from '../base/errors.ts';
import {
  type DynamicDisableRequest,
  type DynamicEnableRequest,
  openDynamicDisable,
  openDynamicEnable,
} from '../fleet/use-cases/open-dynamic-enable.ts';
import type { Services } from './output/services.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { runOnHosts } from './run-on-hosts.ts';

export interface DynamicDisableCommandRequest extends DynamicDisableRequest {
  readonly plan: PlanRequest;
}

export interface DynamicEnableCommandRequest extends DynamicEnableRequest {
  readonly plan: PlanRequest;
}

/** `dynamic enable HOST...`. */
export function runDynamicEnable(services: Services, request: DynamicEnableCommandRequest): Promise<ExitCode> {
  return runOnHosts(services, request, { title: 'dynamic enable', open: (scope) => openDynamicEnable(services, request, scope) });
}

/** `dynamic disable HOST...`. */
export function runDynamicDisable(services: Services, request: DynamicDisableCommandRequest): Promise<ExitCode> {
  return runOnHosts(services, request, {
    title: 'dynamic disable',
    open: (scope) => openDynamicDisable(services, request, scope),
  });
}
