import type { ExitCode } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { type CollectRequest, collectConfigMaps } from '../dynamic/use-cases/collect-config-maps.ts';
import type { HostsRequest } from '../fleet/use-cases/host-access.ts';
import { type CheckpointCollectionRequest, openCheckpointCollection } from '../fleet/use-cases/open-checkpoint-collection.ts';
import type { Services } from './output/services.ts';
import { renderDocument } from './output/show-document.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { plansOf, showClusterPlan } from './output/show-plan.ts';
import { runOnHosts } from './run-on-hosts.ts';

/** `dynamic gc`: of the ConfigMaps of a cluster, or of the checkpoints on hosts. */
export interface DynamicGcRequest extends CollectRequest, CheckpointCollectionRequest {
  readonly olderThan: { readonly ms: number; readonly seconds: number };
  /** Null: ConfigMaps. */
  readonly hosts: HostsRequest | null;
  readonly plan: PlanRequest;
}

/** `dynamic gc`: deletes ConfigMaps that no node uses; with `--host` unused checkpoints on those hosts. */
export async function runDynamicGc(services: Services, request: DynamicGcRequest): Promise<ExitCode> {
  const { namespace, hosts, plan } = request;
  if (hosts !== null)
    return runOnHosts(services, request, { title: 'dynamic gc', open: () => openCheckpointCollection(services, request, hosts) });
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const { changes, cluster, deleted } = await collectConfigMaps(services, request, reporter);
  if (request.run.dryRun) return showClusterPlan(services, plan, { phase: 'dynamic-gc', plans: plansOf(changes), cluster });
  const { format } = plan;
  const lines =
    deleted.length === 0
      ? ['Nothing to delete: every ConfigMap is in use or newer than --older-than.']
      : deleted.map((name) => `configmap/${name} deleted`);
  const document = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'DeletedConfigs', namespace, deleted };
  services.output.stdout(format === 'text' ? joinLines(lines) : renderDocument(document, format));
  return 0;
}
