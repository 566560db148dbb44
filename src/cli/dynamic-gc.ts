import type { ExitCode } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { collectWorkflow } from '../dynamic/workflows/collect-checkpoints.ts';
import { planGarbage } from '../dynamic/workflows/collect-garbage.ts';
import { type HostsRequest, readHostTargets } from '../fleet/use-cases/host-access.ts';
import type { WritingRequest } from '../fleet/use-cases/host-writing.ts';
import { applyClusterChange } from '../host/apply.ts';
import { planWorkflow } from '../host/run-workflow.ts';
import { clusterOnUse } from '../kubeadm/use-cases/cluster-on-use.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import { loadCatalogue } from '../kubelet/catalogue.ts';
import { plansOf, showClusterPlan } from './dynamic-plan.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import { renderDocument } from './show-document.ts';
import type { PlanRequest } from './show-plan.ts';

/** `dynamic gc`: of the ConfigMaps of a cluster, or of the checkpoints on hosts. */
export interface DynamicGcRequest {
  readonly olderThan: { readonly ms: number; readonly seconds: number };
  readonly namespace: string;
  readonly cluster: KubeconfigRequest;
  /** Null: ConfigMaps. */
  readonly hosts: HostsRequest | null;
  /** The checkpoint directory of a kubelet up to 1.23; null: from its command line. */
  readonly checkpointDirectory: string | null;
  readonly plan: PlanRequest;
  readonly writing: WritingRequest;
}

/** `dynamic gc`: deletes ConfigMaps that no node uses; with `--host` unused checkpoints on those hosts. */
export async function runDynamicGc(services: Services, request: DynamicGcRequest): Promise<ExitCode> {
  const { olderThan, namespace, hosts, plan } = request;
  if (hosts !== null) return collectOnHosts(services, request, hosts);
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const cluster = clusterOnUse(services, request.cluster, { writes: reporter });
  try {
    const api = await cluster.open();
    const changes = await planGarbage(api, { namespace, now: services.clock.now(), olderThanMs: olderThan.ms });
    if (plan.dryRun) return showClusterPlan(services, plan, { phase: 'dynamic-gc', plans: plansOf(changes), cluster: api });
    const deleted: string[] = [];
    for (const change of changes) {
      await applyClusterChange(api, change);
      if (change.kind === 'delete-object') deleted.push(change.ref.name);
    }
    const { format } = plan;
    const lines =
      deleted.length === 0
        ? ['Nothing to delete: every ConfigMap is in use or newer than --older-than.']
        : deleted.map((name) => `configmap/${name} deleted`);
    const document = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'DeletedConfigs', namespace, deleted };
    services.output.stdout(format === 'text' ? joinLines(lines) : renderDocument(document, format));
    return 0;
  } finally {
    await cluster.close();
  }
}

async function collectOnHosts(services: Services, request: DynamicGcRequest, hosts: HostsRequest): Promise<ExitCode> {
  const { plan, writing, olderThan, checkpointDirectory } = request;
  const options = { catalogue: await loadCatalogue(), directory: checkpointDirectory, olderThanSeconds: olderThan.seconds };
  return runOnHosts(services, {
    targets: await readHostTargets(services, hosts),
    cluster: null,
    planHost: (context, run) => planWorkflow(collectWorkflow, context, options, run),
    plan,
    writing,
    reporter: services.reporter({ verbosity: plan.verbosity, format: 'text' }),
    warnings: [],
    dryRun: plan.dryRun,
    skipPhases: [],
  });
}
