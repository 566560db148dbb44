import type { SensitiveText } from '../../base/text/secret.ts';
import type { Warning } from '../../host/plan/change.ts';
import { DOCUMENT_SETTINGS, withDocument } from '../../host/run-settings.ts';
import { hasPhase, planWorkflow } from '../../host/run-workflow.ts';
import type { Flags } from '../../kubeadm/config/flag-values.ts';
import { mergeInitFlags } from '../../kubeadm/config/flags.ts';
import type { LoadedConfig } from '../../kubeadm/config/load.ts';
import { problemAsWarning } from '../../kubeadm/config/problem-as-warning.ts';
import { initTokens } from '../../kubeadm/use-cases/init-phases.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { type KubeconfigRequest, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import { adoptWorkflow } from '../../kubeadm/workflows/adopt-cluster.ts';
import { initWorkflow } from '../../kubeadm/workflows/init.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import type { NodeCommandPorts } from '../ports.ts';
import type { JoinCommands } from './open-init.ts';
import type { CommandScope, HostsCommand, HostsSettings } from './run-hosts.ts';

export interface AdoptRequest extends HostsSettings {
  /** The file of `--config`. */
  readonly config: string | undefined;
  /** Options that override the documents of the file. */
  readonly flags: Flags;
  readonly cluster: KubeconfigRequest;
  readonly forceUpload: boolean;
  readonly printsJoinCommand: boolean;
  readonly skipTokenPrint: boolean;
}

interface OpenedAdopt extends HostsCommand {
  /** The join commands of the run; empty before its last phase. */
  readonly joinCommands: JoinCommands;
}

const ADOPT_KINDS = ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration'] as const;
/** Of InitConfiguration. */
const USED_FIELDS: readonly string[] = ['bootstrapTokens', ...DOCUMENT_SETTINGS];

/**
 * Prepares `cluster adopt`. It needs no host: the local host only runs the workflow.
 * @throws AppError: problems of the configuration, all at once (exit code 2); errors of the kubeconfig and the API server
 */
export async function openAdopt(services: NodeCommandPorts, request: AdoptRequest, scope: CommandScope): Promise<OpenedAdopt> {
  const loaded = await loadConfigFile(services, request.config, ADOPT_KINDS);
  const config = mergeInitFlags(loaded, request.flags);
  const warnings = [...requireValid(config), ...ignoredFields(loaded)];
  // A file for init may skip phases that adopt does not have.
  const skipPhases = config.init?.skipPhases?.filter((name) => hasPhase(adoptWorkflow, name) || !hasPhase(initWorkflow, name));
  const run = withDocument(request.run, { ...config.init, skipPhases });
  const opened = await openCluster(services, request.cluster, { ...run, writes: scope.reporter });
  if (opened.cluster !== null) scope.opened(opened.cluster);
  const joinCommands = new Map<string, 'worker' | 'control-plane'>();
  const options = {
    config,
    catalogue: await loadCatalogue(),
    apiServer: opened.apiServer,
    ...(await initTokens(services, config.init ?? {}, run)),
    forceUpload: request.forceUpload,
    withholdToken: request.skipTokenPrint,
    showJoinCommand: request.printsJoinCommand
      ? (command: SensitiveText, joins: 'worker' | 'control-plane') => joinCommands.set(command.reveal(), joins)
      : null,
  };
  return {
    planHost: (context, own) => planWorkflow(adoptWorkflow, context, options, own),
    targets: [{}],
    changesNoHost: true,
    cluster: opened.cluster,
    run,
    warnings: [...warnings, ...opened.warnings],
    joinCommands,
  };
}

/** Warnings about the members of InitConfiguration that describe a host. */
function ignoredFields({ init = {}, positions }: LoadedConfig): readonly Warning[] {
  return Object.keys(init).flatMap((path) => {
    const position = positions.get(`InitConfiguration.${path}`);
    if (position === undefined || USED_FIELDS.includes(path)) return [];
    return [problemAsWarning({ code: 'CONFIG_IGNORED_FIELD', message: 'ignored, because cluster adopt changes no host', path, position })];
  });
}
