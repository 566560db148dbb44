import type { KubeObject } from '../../../src/kube/object.ts';
import { itemsOf, memberOf } from '../members.ts';
import { CONTROLLER, type ControllerContext, forEachWritten, typeOf } from './controller.ts';

const JOBS = typeOf('batch/v1', 'Job');

/** Completes every Job immediately: stand-in kubelets run no containers of a Job. */
export function startJobRunner(context: ControllerContext): void {
  forEachWritten(context, JOBS, (job) => {
    if (itemsOf(memberOf(job, 'status'), 'conditions').length === 0) complete(context, job);
  });
}

function complete({ registry, clock }: ControllerContext, job: KubeObject): void {
  const time = clock
    .now()
    .toISOString()
    .replace(/\.\d+Z$/, 'Z');
  const conditions = [{ type: 'Complete', status: 'True', lastProbeTime: time, lastTransitionTime: time, reason: 'CompletionsReached' }];
  const status = { startTime: time, completionTime: time, succeeded: 1, conditions };
  const at = { namespace: job.metadata.namespace ?? '', name: job.metadata.name };
  registry.update(JOBS, at, { ...job, status }, { user: CONTROLLER, subresource: 'status' });
}
