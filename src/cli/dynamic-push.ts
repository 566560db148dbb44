import type { ExitCode } from '../base/errors.ts';
import { type PushedFileRequest, performPush, planPushedFile } from '../dynamic/use-cases/push-file.ts';
import type { PushPlan } from '../dynamic/workflows/push-config.ts';
import type { Cluster } from '../kube/cluster.ts';
import { type KubeconfigRequest, openCluster } from '../kubeadm/use-cases/open-cluster.ts';
import { type ConfigSource, describeSource, formatConfigSource } from '../kubelet/config-source.ts';
import { showClusterPlan } from './dynamic-plan.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';
import type { PlanRequest } from './show-plan.ts';

export interface DynamicPushRequest {
  readonly pushed: PushedFileRequest;
  readonly cluster: KubeconfigRequest;
  readonly plan: PlanRequest;
}

/** `dynamic push FILE`: prints `NAMESPACE/NAME/KEY`. */
export async function runDynamicPush(services: Services, { pushed, cluster: named, plan }: DynamicPushRequest): Promise<ExitCode> {
  const { dryRun } = plan;
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const text = await services.input.readText(pushed.file);
  const { cluster, warnings } = await openCluster(services, named, { dryRun, staged: false, writes: reporter });
  try {
    const push = await planPushedFile(services, { pushed, text, cluster, reporter });
    if (dryRun) return showClusterPlan(services, plan, { phase: 'dynamic-push', plans: [push.plan], cluster, warnings });
    await performPush(cluster as Cluster, push, reporter);
    showPushed(services, plan.format, push);
    return 0;
  } finally {
    await cluster?.close();
  }
}

function showPushed(services: Services, format: DocumentFormat, { source, plan }: PushPlan): void {
  const done = { 'create-object': 'created', 'update-object': 'updated' }[plan.changes.at(-1)?.kind as string] ?? 'unchanged';
  services.output.stdout(format === 'text' ? `${describeSource(source)}\n` : renderDocument(document(source, done), format));
}

function document(source: ConfigSource, result: string): object {
  return { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'PushedConfig', result, configSource: formatConfigSource(source) };
}
