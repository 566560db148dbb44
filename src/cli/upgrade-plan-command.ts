import type { Command } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import type { PlanClusterUpgradeRequest } from '../fleet/use-cases/plan-cluster-upgrade.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import { flagText } from './option-values.ts';
import { addKubeconfigOptions, addPrinterFlags, addSshOptions, addTargetOption, collect, readOutputOption } from './options.ts';
import type { Services } from './output/services.ts';
import type { ReadFormat } from './output/show-document.ts';
import { hostsRequest, kubeadmFlags, kubeconfigRequest, readFormat, verbosityOf } from './request-parts.ts';

/** The text of `--host` for commands that use one control plane. */
export const CONTROL_PLANE_HOST_HELP = 'control plane, reached over SSH (default: the local host)';

/** `upgrade plan`. */
export function defineUpgradePlan(upgrade: Command, on: On): void {
  const plan = upgrade
    .command('plan')
    .description('Check whether the cluster can be upgraded, and to which versions')
    .argument('[version]', 'version to plan for, e.g. v1.36.2 (default: the newest releases on dl.k8s.io)')
    .option('--config <file>', "UpgradeConfiguration document; '-' for standard input")
    .option('--allow-experimental-upgrades', 'include alpha, beta and release candidate versions')
    .option('--allow-release-candidate-upgrades', 'include release candidates')
    .option('--etcd-upgrade', 'include etcd (default: true)')
    .option('--no-etcd-upgrade', 'do not include etcd')
    .option(
      '--ignore-preflight-errors <checks>',
      "preflight checks whose errors are shown as warnings; 'all' for every check (repeatable)",
      collect,
    )
    .option('--print-config', 'also print the current ClusterConfiguration')
    .addOption(readOutputOption());
  addSections(on(addUpgradeTarget(addPrinterFlags(plan), CONTROL_PLANE_HOST_HELP), planRequest, runUpgradePlan), {
    notes: PLAN_NOTES,
    examples: PLAN_EXAMPLES,
  });
}

/** `upgrade diff`. */
export function defineDiff(upgrade: Command, on: On): void {
  const diff = upgrade
    .command('diff')
    .description('Show the differences between the static Pod manifests of a control plane and those of another version')
    .argument('[version]', 'version to compare with, e.g. v1.36.2 (default: that of the cluster)')
    .option('--config <file>', "UpgradeConfiguration document; '-' for standard input")
    .option('-c, --context-lines <number>', 'unchanged lines around each difference (default: 3)');
  addSections(
    on(addUpgradeTarget(diff, 'control plane, reached over SSH (repeatable; default: the local host)'), diffRequest, runUpgradeDiff),
    { notes: DIFF_NOTES, examples: DIFF_EXAMPLES },
  );
}

/** `--kubeconfig` and the options of a control plane host. */
function addUpgradeTarget(command: Command, target: string): Command {
  return addSshOptions(
    addTargetOption(
      addKubeconfigOptions(command, 'kubeconfig of an administrator (default: /etc/kubernetes/admin.conf on the host)'),
      target,
    ),
  );
}

function planRequest(args: readonly string[], options: CommandOptions): UpgradePlanRequest {
  return { ...targetRequest(args, options), output: { format: readFormat(options), verbosity: verbosityOf(options) } };
}

function diffRequest(args: readonly string[], options: CommandOptions): UpgradeDiffRequest {
  return { ...targetRequest(args, options), verbosity: verbosityOf(options) };
}

function targetRequest(args: readonly string[], options: CommandOptions): Omit<UpgradePlanRequest, 'output'> {
  return {
    config: flagText(options, 'config'),
    flags: { ...kubeadmFlags(options), ...(args[0] === undefined ? {} : { version: args[0] }) },
    cluster: kubeconfigRequest(options),
    hosts: hostsRequest(options),
  };
}

const PLAN_NOTES =
  'The checks are those of upgrade apply: control plane Nodes are Ready, static Pod manifests exist, CoreDNS can be upgraded, and the cluster can run a Job, which the check creates in kube-system. The cluster deletes the Job afterwards. Nothing else is created or changed.';

const PLAN_EXAMPLES = `  kubeletadm upgrade plan                      # on a control plane
  kubeletadm upgrade plan v1.36.3 --host cp1   # over SSH, without asking dl.k8s.io
  kubeletadm upgrade plan -o json`;

const DIFF_NOTES =
  'Compares the manifests of kube-apiserver, kube-controller-manager and kube-scheduler. The new manifests are generated from the ConfigMap kubeadm-config of the cluster, without patches. The exit code is 0 with and without differences.';

const DIFF_EXAMPLES = `  kubeletadm upgrade diff v1.36.3              # on a control plane
  kubeletadm upgrade diff v1.36.3 --host cp1 --host cp2 -c 0`;

interface UpgradePlanRequest extends PlanClusterUpgradeRequest {
  readonly output: { readonly format: ReadFormat; readonly verbosity: number };
}

const UP_TO_DATE = 'The cluster is up to date: no later version is available.\n';
const notNeeded = (version: string): string => `The control plane needs no upgrade to ${version}.\n`;
const UNKNOWN =
  'kubeletadm cannot determine whether a later version is available: dl.k8s.io does not answer. Plan one version with: kubeletadm upgrade plan VERSION\n';

/** `upgrade plan`. */
async function runUpgradePlan(services: Services, request: UpgradePlanRequest): Promise<ExitCode> {
  const [
    { planClusterUpgrade },
    { kubeadmPlanText },
    { upgradePlanDocument, upgradePlanText },
    { readsClusterConfig },
    { renderKubeadmDocument },
    { nextCommands },
  ] = await Promise.all([
    import('../fleet/use-cases/plan-cluster-upgrade.ts'),
    import('../kubeadm/upgrade/kubeadm-plan-text.ts'),
    import('../kubeadm/upgrade/upgrade-plan.ts'),
    import('./kubeadm-output.ts'),
    import('./output/show-document.ts'),
    import('./new-cluster.ts'),
  ]);
  const { format, verbosity } = request.output;
  const { version } = request.flags;
  const reporter = services.reporter({ verbosity, format: 'text' });
  const { plan, configuration } = await planClusterUpgrade(services, request, reporter);
  if (format !== 'text') {
    services.output.document(renderKubeadmDocument(upgradePlanDocument(plan), format));
    return 0;
  }
  if (services.programName === 'kubeadm') {
    const checks = `[preflight] Running pre-flight checks.\n${readsClusterConfig('upgrade/config')}[upgrade] Running cluster health checks\n`;
    services.output.stdout(`${checks}${configuration === null ? '' : usedConfig(configuration)}${kubeadmPlanText(plan)}`);
  } else {
    const config = configuration === null ? '' : `${configuration.trimEnd()}\n\n`;
    const { output, ssh } = await nextCommands(services, request.hosts);
    output.stdout(
      `${config}${upgradePlanText(plan, [...request.hosts.addresses.flatMap((host) => ['--host', quoteShell(host)]), ...ssh])}`,
    );
  }
  if (plan.upgrades.length === 0)
    services.output.stderr(plan.complete ? (version === undefined ? UP_TO_DATE : notNeeded(String(version))) : UNKNOWN);
  return 0;
}

/** @see kubeadm 1.36 cmd/upgrade/common.go printConfiguration */
function usedConfig(configuration: string): string {
  return `[upgrade/config] Configuration used:\n${configuration.replace(/^(?=.)/gm, '\t')}`;
}

interface UpgradeDiffRequest extends PlanClusterUpgradeRequest {
  readonly verbosity: number;
}

/**
 * `upgrade diff`. kubeadm shows three unchanged lines only with the option: its default is that of a missing field.
 * @see kubeadm 1.36 cmd/upgrade/diff.go
 */
async function runUpgradeDiff(services: Services, request: UpgradeDiffRequest): Promise<ExitCode> {
  const [{ diffUpgrade }, { readsClusterConfig }] = await Promise.all([
    import('../fleet/use-cases/plan-cluster-upgrade.ts'),
    import('./kubeadm-output.ts'),
  ]);
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  const isKubeadm = services.programName === 'kubeadm';
  const diff = await diffUpgrade(services, { ...request, contextLines: isKubeadm ? 0 : 3 }, reporter);
  services.output.stdout(`${isKubeadm ? readsClusterConfig('upgrade/diff') : ''}${diff}`);
  return 0;
}
