import type { ExitCode } from '../base/errors.ts';
import { type PushRequest, pushFile } from '../dynamic/use-cases/push-file.ts';
import type { PushPlan } from '../dynamic/workflows/push-config.ts';
import { type ConfigSource, describeSource, formatConfigSource } from '../kubelet/layers/config-source.ts';
import type { Services } from './output/services.ts';
import { type DocumentFormat, renderDocument } from './output/show-document.ts';
import { showClusterPlan, type WithPlan } from './output/show-plan.ts';

/** `dynamic push FILE`: prints `NAMESPACE/NAME/KEY`. */
export async function runDynamicPush(services: Services, request: WithPlan<PushRequest>): Promise<ExitCode> {
  const { plan } = request;
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const { push, cluster, warnings } = await pushFile(services, request, reporter);
  if (request.run.dryRun) return showClusterPlan(services, plan, { phase: 'dynamic-push', plans: [push.plan], cluster, warnings });
  showPushed(services, plan.format, push);
  return 0;
}

function showPushed(services: Services, format: DocumentFormat, { source, plan }: PushPlan): void {
  const done = { 'create-object': 'created', 'update-object': 'updated' }[plan.changes.at(-1)?.kind as string] ?? 'unchanged';
  services.output.stdout(format === 'text' ? `${describeSource(source)}\n` : renderDocument(document(source, done), format));
}

function document(source: ConfigSource, result: string): object {
  return { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'PushedConfig', result, configSource: formatConfigSource(source) };
}
