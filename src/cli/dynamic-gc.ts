import { type ExitCode, usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import { joinLines } from '../base/text/styled.ts';
import { collectWorkflow } from '../dynamic/workflows/collect-checkpoints.ts';
import { planGarbage } from '../dynamic/workflows/collect-garbage.ts';
import { applyClusterChange } from '../host/apply.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { loadCatalogue } from '../kubelet/catalogue.ts';
import { clusterOnUse } from './cluster-on-use.ts';
import type { CommandOptions } from './command.ts';
import { plansOf, showClusterPlan } from './dynamic-plan.ts';
import { flagList, flagText, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import { formatOf, renderDocument } from './show-document.ts';

/** `dynamic gc`: deletes ConfigMaps that no node uses; with `--host` checkpoints that nobody needs, on those hosts. */
export async function runDynamicGc(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const age = flagText(options, 'olderThan') ?? '1h';
  const nanoseconds = parseGoDuration(age);
  if (nanoseconds === null || nanoseconds < 0n) throw usageError(`--older-than: invalid duration "${age}"`, 'Write it like 24h');
  if (flagList(options, 'host').length > 0) return collectOnHosts(services, options, Number(nanoseconds / 1_000_000_000n));
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const cluster = clusterOnUse(services, options, { writes: reporter });
  try {
    const api = await cluster.open();
    const namespace = flagText(options, 'namespace') ?? AGENT_NAMESPACE;
    const changes = await planGarbage(api, { namespace, now: services.clock.now(), olderThanMs: Number(nanoseconds / 1_000_000n) });
    if (options.dryRun === true) return showClusterPlan(services, options, { phase: 'dynamic-gc', plans: plansOf(changes), cluster: api });
    const deleted: string[] = [];
    for (const change of changes) {
      await applyClusterChange(api, change);
      if (change.kind === 'delete-object') deleted.push(change.ref.name);
    }
    const format = formatOf(options);
    const lines =
      deleted.length === 0 ? ['Nothing to do: every payload is used, or is young.'] : deleted.map((name) => `configmap/${name} deleted`);
    const document = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'DeletedConfigs', namespace, deleted };
    services.output.stdout(format === 'text' ? joinLines(lines) : renderDocument(document, format));
    return 0;
  } finally {
    await cluster.close();
  }
}

async function collectOnHosts(services: Services, options: CommandOptions, olderThanSeconds: number): Promise<ExitCode> {
  return runOnHosts(services, {
    workflow: collectWorkflow,
    targets: await readHostTargets(services, options),
    cluster: null,
    workflowOptions: { catalogue: await loadCatalogue(), directory: flagText(options, 'dynamicConfigDir') ?? null, olderThanSeconds },
    options,
    reporter: services.reporter({ verbosity: verbosityOf(options), format: 'text' }),
    warnings: [],
    dryRun: options.dryRun === true,
    skipPhases: [],
  });
}
