import { type Command, Option } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import type { CollectRequest } from '../dynamic/use-cases/collect-config-maps.ts';
import type { HostsRequest } from '../fleet/use-cases/host-access.ts';
import type { CheckpointCollectionRequest } from '../fleet/use-cases/open-checkpoint-collection.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import type { CommandOptions, On } from './command.ts';
import type { DynamicHistoryRequest } from './dynamic-history.ts';
import type { DynamicInspectRequest } from './dynamic-inspect.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagList, flagText } from './option-values.ts';
import {
  addClusterOptions,
  addDryRunOptions,
  addFleetNames,
  addKubeconfigOptions,
  addNodeSelectionOptions,
  addSshOptions,
  addTableOptions,
  addTargetOption,
  HOST_FORMS,
  readOutputOption,
} from './options.ts';
import type { Services } from './output/services.ts';
import type { PlanRequest } from './output/show-plan.ts';
import {
  backendOf,
  connectionRequest,
  flagDuration,
  fleetNames,
  hostAddress,
  hostsRequest,
  kubeconfigRequest,
  nodeArgument,
  nodeChoice,
  planRequest,
  readFormat,
  runRequest,
  tableRequest,
  verbosityOf,
} from './request-parts.ts';
import type { DynamicStatusRequest } from './status.ts';
import { addLockOption, writingRequest } from './writing-options.ts';

export function addBackend(command: Command): Command {
  return command.addOption(
    new Option(
      '--backend <backend>',
      'component that applies configurations; native: the kubelet (up to 1.23), agent: the kubeletadm agent (default: detected from each Node)',
    ).choices(['native', 'agent']),
  );
}

export function defineReads(dynamic: Command, on: On): void {
  const status = dynamic
    .command('status')
    .description('Show the assigned and the active configuration of nodes, and the reason if they differ')
    .argument('[node...]', 'names of Nodes, as NAME or node/NAME, or of hosts in the fleet file (default: all)')
    .option('-w, --watch', 'after the first table, print changed rows until interrupted');
  addTableOptions(status);
  addNodeSelectionOptions(status);
  on(addClusterOptions(addBackend(status)), statusRequest, async (...args) => (await import('./status.ts')).runDynamicStatus(...args));
  addSections(status, { notes: STATUS_NOTES });
  const history = dynamic
    .command('history')
    .description(
      'Show the last assignments of a node by kubeletadm, and its configuration changes from the events that the API server still stores',
    )
    .argument('<node>', 'name of the Node, as NAME or node/NAME, or of its host in the fleet file')
    .addOption(readOutputOption());
  on(addFleetNames(addClusterOptions(history)), historyRequest, async (...args) =>
    (await import('./dynamic-history.ts')).runDynamicHistory(...args),
  );
}

export function defineGc(dynamic: Command, on: On): void {
  const gc = dynamic
    .command('gc')
    .description('Delete unused ConfigMaps created by dynamic push. With --host, delete unused checkpoints on hosts instead')
    .option('-n, --namespace <namespace>', 'namespace of the ConfigMaps', AGENT_NAMESPACE)
    .option('--older-than <duration>', 'minimum age of the ConfigMaps or checkpoints to delete', '1h');
  addTargetOption(
    addClusterOptions(addDryRunOptions(gc)),
    'host, reached over SSH, to delete checkpoints from; ConfigMaps are kept (repeatable)',
  );
  addOptionGroup(gc, HEADINGS.host, (host) =>
    host.option(
      '--dynamic-config-dir <dir>',
      'with --host: checkpoint directory of a kubelet up to 1.23 (default: from the command line of the kubelet)',
    ),
  );
  on(addLockOption(addSshOptions(gc)), gcRequest, runDynamicGc);
  addSections(gc, { notes: CHECKPOINT_NOTES });
}

export function defineInspect(dynamic: Command, on: On): void {
  const inspect = dynamic
    .command('inspect')
    .description('Show the checkpoints on a host (local copies of assigned ConfigMaps), and which of them are in use or damaged')
    .argument('<host>', `${HOST_FORMS}; localhost: the local host`)
    .option(
      '--repair',
      'start a failing kubelet with its local configuration (kubelets up to 1.23: with the last known good configuration, if its checkpoint is intact)',
    )
    .option('--dynamic-config-dir <dir>', 'checkpoint directory (default: from the command line of the kubelet)');
  addKubeconfigOptions(
    addDryRunOptions(inspect),
    'kubeconfig for more checks: the author of the assignment, differences between checkpoints and ConfigMaps, and with --repair whether the failing configuration is still assigned (default: none)',
  );
  on(addLockOption(addSshOptions(addFleetNames(inspect))), inspectRequest, async (...args) =>
    (await import('./dynamic-inspect.ts')).runDynamicInspect(...args),
  );
  addSections(inspect, { notes: CHECKPOINT_NOTES });
}

const STATUS_NOTES =
  'The column ASSIGNED shows the ConfigMap as NAMESPACE/NAME/KEY. The columns ACTIVE and LAST KNOWN GOOD show NAMESPACE/NAME/KEY@RESOURCEVERSION. CHANGED is the time since the last change of the ACTIVE configuration. For nodes in the STATE not-synced, CHANGED is instead the time since the first failed attempt to read the assigned ConfigMap. REPORTED is the time since the last report of the agent.';

const CHECKPOINT_NOTES =
  'A checkpoint is the local copy of an assigned ConfigMap on a host. The kubeletadm agent stores checkpoints, and so does a kubelet up to 1.23 with dynamic configuration.';

function statusRequest(args: readonly string[], options: CommandOptions): DynamicStatusRequest {
  return {
    choice: nodeChoice(args, options),
    backend: backendOf(options),
    watches: options.watch === true,
    cluster: kubeconfigRequest(options),
    output: { ...tableRequest(options), verbosity: verbosityOf(options) },
  };
}

function historyRequest([node, ...more]: readonly string[], options: CommandOptions): DynamicHistoryRequest {
  if (node === undefined || more.length > 0) throw usageError('dynamic history needs one node', 'Pass one node');
  const choice = {
    kind: 'names',
    names: [nodeArgument(node)],
    file: fleetNames(options),
    connection: connectionRequest(options),
  } as const;
  return { choice, cluster: kubeconfigRequest(options), format: readFormat(options) };
}

function gcRequest(_: readonly string[], options: CommandOptions): DynamicGcRequest {
  const ms = flagDuration(options, 'olderThan', { flag: '--older-than', example: 'Use a duration such as 24h' }) ?? 3_600_000;
  return {
    olderThan: { ms, seconds: Math.floor(ms / 1000) },
    namespace: flagText(options, 'namespace') ?? AGENT_NAMESPACE,
    cluster: kubeconfigRequest(options),
    hosts: flagList(options, 'host').length === 0 ? null : hostsRequest(options),
    checkpointDirectory: flagText(options, 'dynamicConfigDir') ?? null,
    plan: planRequest(options),
    run: runRequest(options),
    writing: writingRequest(options),
  };
}

function inspectRequest([address, ...more]: readonly string[], options: CommandOptions): DynamicInspectRequest {
  if (address === undefined || more.length > 0)
    throw usageError('dynamic inspect needs one host', 'Pass one host; localhost is read directly, without SSH');
  const run = runRequest(options);
  if (options.repair !== true && run.dryRun)
    throw usageError('--dry-run requires --repair', 'Add --repair, or omit --dry-run: without --repair the command changes nothing');
  return {
    address: hostAddress(address),
    file: fleetNames(options),
    repair: options.repair === true,
    directory: flagText(options, 'dynamicConfigDir') ?? null,
    cluster: kubeconfigRequest(options),
    connection: connectionRequest(options),
    plan: planRequest(options),
    run,
    writing: writingRequest(options),
  };
}

/** `dynamic gc`: of the ConfigMaps of a cluster, or of the checkpoints on hosts. */
interface DynamicGcRequest extends CollectRequest, CheckpointCollectionRequest {
  readonly olderThan: { readonly ms: number; readonly seconds: number };
  /** Null: ConfigMaps. */
  readonly hosts: HostsRequest | null;
  readonly plan: PlanRequest;
}

/** `dynamic gc`: deletes ConfigMaps that no node uses; with `--host` unused checkpoints on those hosts. */
async function runDynamicGc(services: Services, request: DynamicGcRequest): Promise<ExitCode> {
  const [{ collectConfigMaps }, { openCheckpointCollection }, { renderDocument }, { plansOf, showOrApply }, { runOnHosts }] =
    await Promise.all([
      import('../dynamic/use-cases/collect-config-maps.ts'),
      import('../fleet/use-cases/open-checkpoint-collection.ts'),
      import('./output/show-document.ts'),
      import('./output/show-plan.ts'),
      import('./run-on-hosts.ts'),
    ]);
  const { namespace, hosts, plan } = request;
  if (hosts !== null)
    return runOnHosts(services, request, { title: 'dynamic gc', open: () => openCheckpointCollection(services, request, hosts) });
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  return collectConfigMaps(services, request, reporter, ({ changes, cluster }, apply) =>
    showOrApply(services, request, { phase: 'dynamic-gc', plans: plansOf(changes), cluster }, async () => {
      const deleted = await apply();
      const { format } = plan;
      const lines =
        deleted.length === 0
          ? ['Nothing to delete: every ConfigMap is in use or newer than --older-than.']
          : deleted.map((name) => `configmap/${name} deleted`);
      const document = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'DeletedConfigs', namespace, deleted };
      services.output.stdout(format === 'text' ? joinLines(lines) : renderDocument(document, format));
      return 0;
    }),
  );
}
