import { usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { type RunSettings, withDocument } from '../../host/run-settings.ts';
import { PREFLIGHT_PHASE, planWorkflow } from '../../host/run-workflow.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeResetFlags } from '../../kubeadm/config/flags.ts';
import { controlPlaneConnector, etcdConnector } from '../../kubeadm/use-cases/control-plane-inputs.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { type KubeconfigRequest, type OpenedCluster, openCluster, operatorNodeTrust } from '../../kubeadm/use-cases/open-cluster.ts';
import type { ApiAccess } from '../../kubeadm/workflows/control-plane/api-access.ts';
import { type ResetOptions, resetWorkflow } from '../../kubeadm/workflows/reset.ts';
import { type HostTarget, isLocalHost, targetName } from '../host-target.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { RulesRequest } from './fleet-rules.ts';
import type { HostsRequest } from './host-access.ts';
import type { WritingRequest } from './host-writing.ts';
import { readHostTargets } from './named-hosts.ts';
import type { OpenedCommand } from './run-workflow-on-hosts.ts';

export interface ResetRequest {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the document of the file. */
  readonly flags: Flags;
  readonly hosts: HostsRequest;
  readonly run: RunSettings;
  readonly rules: RulesRequest;
  readonly writing: WritingRequest;
  /** Reset without a confirmation. */
  readonly force: boolean;
  /** The cluster to delete the Node from; null: keep the Node. */
  readonly deleteNode: NodeDeletionRequest | null;
}

/** The Node to delete, and the credentials. */
interface NodeDeletionRequest {
  readonly cluster: KubeconfigRequest;
  /** Undefined: the Node registered by the host. */
  readonly nodeName: string | undefined;
}

/** Asks whether to reset hosts; null: the program has no terminal. */
type ConfirmReset = (hosts: readonly string[]) => Promise<boolean | null>;

/**
 * Prepares `reset` and `reset phase NAME...`. Asks the operator before a cluster is contacted, unless it is forced
 * or a dry run.
 * @throws AppError: problems of the configuration, all at once, or no confirmation (exit code 2)
 */
export async function openReset(
  services: NodeCommandPorts,
  request: ResetRequest,
  { reporter, confirm }: { readonly reporter: Reporter; readonly confirm: ConfirmReset },
): Promise<OpenedCommand> {
  const config = mergeResetFlags(await loadConfigFile(services, request.config, ['ResetConfiguration']), request.flags);
  const warnings = requireValid(config);
  const reset = config.reset ?? {};
  const run = withDocument(request.run, reset);
  const { dryRun, onlyPhase } = run;
  const targets = await readHostTargets(services, request.hosts);
  // As in kubeadm, preflight asks for the confirmation. Other phases on other hosts are confirmed as well.
  const isConfirmed = onlyPhase !== undefined && onlyPhase !== PREFLIGHT_PHASE.name && targets.every(isLocalHost);
  if (!dryRun && !request.force && reset.force !== true && !isConfirmed) await requireConfirmation(confirm, targets.map(describeTarget));
  const nodeName = request.deleteNode?.nodeName;
  const opened = await openForDeletion(services, { deletion: request.deleteNode, targets, reporter });
  const accesses: ApiAccess[] = [];
  const options: ResetOptions = {
    reset,
    run,
    connect: controlPlaneConnector(services),
    connectEtcd: etcdConnector(services),
    opened: (access) => accesses.push(access),
    deleteNode: opened === null ? undefined : { trust: operatorNodeTrust(services, opened), nodeName },
  };
  return {
    workflow: {
      targets,
      cluster: opened?.cluster ?? null,
      planHost: (context, own) => planWorkflow(resetWorkflow, context, options, own),
      rules: request.rules,
      writing: request.writing,
      run,
      oneHostPerNode: opened !== null,
    },
    warnings,
    close: async () => {
      for (const access of accesses) await access.close();
      await opened?.cluster?.close();
    },
  };
}

/** The cluster with `--delete-node`; otherwise no cluster is contacted. */
async function openForDeletion(
  services: NodeCommandPorts,
  {
    deletion,
    targets,
    reporter,
  }: { readonly deletion: NodeDeletionRequest | null; readonly targets: readonly HostTarget[]; readonly reporter: Reporter },
): Promise<OpenedCluster | null> {
  if (deletion === null) return null;
  if (deletion.nodeName !== undefined && targets.length > 1)
    throw usageError('--node-name applies to one host, but several were given', 'Reset the hosts one by one');
  return openCluster(services, deletion.cluster, { writes: reporter });
}

async function requireConfirmation(confirm: ConfirmReset, hosts: readonly string[]): Promise<void> {
  const answer = await confirm(hosts);
  if (answer === null) throw usageError('reset asks before it changes anything, but standard input is not a terminal', 'Add --force');
  if (!answer) throw usageError('reset was declined', 'Nothing was changed');
}

/** A host of a fleet file with the address that the file gives it. */
function describeTarget(target: HostTarget): string {
  if (isLocalHost(target)) return 'the local host';
  const name = targetName(target);
  const address = target.member?.ssh.address;
  return address === undefined || address === name ? name : `${name} (${address})`;
}
