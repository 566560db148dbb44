import type { Command } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import { parseKubernetesVersion, releaseOfVersion } from '../base/kubernetes-version.ts';
import { joinLines } from '../base/text/styled.ts';
import type { UpgradeApplyRequest } from '../fleet/use-cases/open-upgrade-apply.ts';
import type { UpgradeNodeRequest } from '../fleet/use-cases/open-upgrade-node.ts';
import { isSinglePhase } from '../host/run-settings.ts';
import type { PlannedWorkflow } from '../host/run-workflow.ts';
import type { PhaseHelp, PhaseLists } from '../kubeadm/workflows/phase-lists.ts';
import { addAllowOptions, IMPACT_NOTES } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import {
  addKubeconfigOptions,
  addPlanOptions,
  addShowOrigin,
  addSshOptions,
  addTargetOption,
  collect,
  KUBELET_CONFIG_DIR,
} from './options.ts';
import type { Services } from './output/services.ts';
import type { WithPlan } from './output/show-plan.ts';
import { addPageOptions, type PageFlags, pageFlags } from './page-options.ts';
import { definePhaseCommands, phaseName, SINGLE_UPGRADE_PHASES } from './phase-commands.ts';
import { withPage } from './report/with-page.ts';
import { fieldsRequest, flagNode, hostsRequest, kubeadmFlags, kubeconfigRequest, kubeletRunRequest, planRequest } from './request-parts.ts';
import { addHostRolloutOptions, addOrderOption, canaryOption, rulesRequest } from './rollout-options.ts';
import { CONTROL_PLANE_HOST_HELP, defineDiff, defineUpgradePlan } from './upgrade-plan-command.ts';
import { addConfirmOptions, addReasonOption, writingRequest } from './writing-options.ts';

/** The commands below `upgrade`. */
export function defineUpgrade(upgrade: Command, on: On, phases: PhaseLists): void {
  defineUpgradePlan(upgrade, on);
  defineDiff(upgrade, on);
  defineUpgradeApply(upgrade, on, phases['upgrade apply']);
  defineUpgradeNode(upgrade, on, phases['upgrade node']);
}

/** `upgrade node`, `upgrade node phase`. */
function defineUpgradeNode(upgrade: Command, on: On, phases: readonly PhaseHelp[]): void {
  const options = (command: Command): Command =>
    addPageOptions(
      addReasonOption(
        addConfirmOptions(
          addOrderOption(
            addHostRolloutOptions(
              addSshOptions(addTargetOption(addAllowOptions(addUpgradeOptions(addShowOrigin(addPlanOptions(command)))))),
              canaryOption('1', 'counts for the control planes, then for the workers'),
            ),
            'the order of the arguments',
          ),
        ),
      ),
    );
  const node = upgrade
    .command('node')
    .description('Upgrade a node to the version of the cluster: its control plane, if it has one, and its kubelet configuration');
  addSections(on(options(node), upgradeRequest, runUpgradeNode), { notes: NOTES, phases, examples: EXAMPLES });
  const phase = node
    .command('phase')
    .description('Run one phase of upgrade node. Example: upgrade node phase addon coredns runs the phase addon/coredns')
    .argument('<name...>', 'name of a phase, e.g. kubelet-config');
  on(options(phase), upgradeRequest, runUpgradeNode);
  definePhaseCommands(phase, phases, {
    single: SINGLE_UPGRADE_PHASES,
    run: (command, words) => on(command, (_, given) => upgradeRequest(words, given), runUpgradeNode),
  });
}

function addUpgradeOptions(command: Command): Command {
  addOptionGroup(command, HEADINGS.node, (node) =>
    node
      .option('--config <file>', "UpgradeConfiguration document; '-' for standard input")
      .option(
        '--node-name <name>',
        'with --kubeconfig: name of the Node (default: from the client certificate of the kubelet; required if that certificate is missing)',
      )
      .option(
        '--patches <dir>',
        'directory of patches. Patches of the KubeletConfiguration are stored on the host and replace those of earlier commands. Patches of static Pods and add-ons apply only to this upgrade',
      )
      .option('--overlay <file>', 'file with KubeletConfiguration fields of this node; replaces all overlays stored on the host')
      .option(
        '--set <field=value>',
        'KubeletConfiguration field of this node; replaces all fields stored from an earlier --set (repeatable)',
        collect,
      )
      .option('--kubelet-config-dir', KUBELET_CONFIG_DIR)
      .option(
        '--no-kubelet-config-dir',
        'write the fields of this node to config.yaml, and remove the drop-in files of --kubelet-config-dir',
      )
      .option('--resolv-conf <file>', 'resolvConf of the kubelet')
      .option('--cgroup-driver <driver>', 'cgroupDriver of the kubelet')
      .option(
        '--forget',
        'discard the settings stored on the host by init, join and earlier upgrades; use and store only the settings of this command',
      ),
  );
  addControlPlaneOptions(command);
  return addKubeconfigOptions(
    command,
    'kubeconfig to read the cluster configuration with (default: /etc/kubernetes/kubelet.conf on the host; on control planes admin.conf)',
  );
}

function upgradeRequest(args: readonly string[], options: CommandOptions): WithPlan<UpgradeNodeRequest> & PageFlags {
  const rules = rulesRequest(options, { namesCanary: true });
  return {
    ...pageFlags(options),
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    cluster: kubeconfigRequest(options),
    hosts: hostsRequest(options),
    fields: fieldsRequest(options),
    plan: planRequest(options),
    run: kubeletRunRequest(options, phaseName(args)),
    rules: { ...rules, canary: rules.canary ?? { hosts: 1 } },
    writing: writingRequest(options, 'upgrade node'),
    nodeName: flagNode(options, 'nodeName') ?? null,
    forget: options.forget === true,
  };
}

const NOTES = `The overlays, the patches of the KubeletConfiguration and the settings of init and join are stored on the host and apply to upgrades by default. Patches of static Pods and add-ons are not stored: add --patches to every upgrade.\n\n${IMPACT_NOTES}`;

const EXAMPLES = `  # preview the effect of an edited kubelet-config on two nodes
  kubeletadm upgrade node --host node2 --host node3 --dry-run
  # with different patches; those of the KubeletConfiguration are stored for later upgrades
  kubeletadm upgrade node --host node2 --patches ./patches
  # like kubeadm: on the node itself, after the package upgrade
  kubeletadm upgrade node phase kubelet-config`;

const VERSION = 'version to upgrade to, e.g. v1.36.2 (default: kubernetesVersion of --config)';

/** `upgrade apply`, `upgrade apply phase`. */
function defineUpgradeApply(upgrade: Command, on: On, phases: readonly PhaseHelp[]): void {
  const apply = upgrade
    .command('apply')
    .usage('[options] [version]')
    .argument('[version]', VERSION)
    .description('Upgrade the first control plane and the configuration of the cluster');
  addSections(
    on(applyOptions(apply), (args, options) => applyRequest([], args[0], options), runUpgradeApply),
    {
      notes: IMPACT_NOTES,
      phases,
      examples: APPLY_EXAMPLES,
    },
  );
  const phase = apply
    .command('phase')
    .description('Run one phase of upgrade apply. Example: upgrade apply phase addon coredns v1.36.2 runs the phase addon/coredns')
    .argument('<name...>', 'name of a phase, and the version to upgrade to, e.g. control-plane v1.36.2');
  on(applyOptions(phase), phaseRequest, runUpgradeApply);
  definePhaseCommands(phase, phases, {
    single: SINGLE_UPGRADE_PHASES,
    run: (command, words) =>
      on(command.argument('[version]', VERSION), (args, given) => applyRequest(words, args[0], given), runUpgradeApply),
  });
}

function applyOptions(command: Command): Command {
  command
    .option('-y, --yes', 'do not ask before the upgrade')
    .option('-f, --force', FORCE)
    .option('--config <file>', "UpgradeConfiguration document; '-' for standard input")
    .option('--patches <dir>', 'directory of patches for static Pods, add-ons and the kubelet configuration')
    .option('--allow-experimental-upgrades', 'allow alpha, beta and release candidate versions')
    .option('--allow-release-candidate-upgrades', 'allow release candidate versions');
  addControlPlaneOptions(command);
  command.option('--print-config', 'also print the ClusterConfiguration that results from the upgrade');
  addShowOrigin(addPlanOptions(command));
  addKubeconfigOptions(command, 'kubeconfig of an administrator (default: /etc/kubernetes/admin.conf on the host)');
  return addReasonOption(addConfirmOptions(addSshOptions(addTargetOption(addAllowOptions(command), CONTROL_PLANE_HOST_HELP))));
}

/** Options for the static Pods of a control plane, of `upgrade apply` and `upgrade node`. */
function addControlPlaneOptions(command: Command): Command {
  return command
    .option('--certificate-renewal', 'renew the certificates of the upgraded components (default: true)')
    .option('--no-certificate-renewal', 'keep the certificates')
    .option('--etcd-upgrade', 'upgrade etcd (default: true)')
    .option('--no-etcd-upgrade', 'keep the current etcd, and make no backup of its data');
}

const FORCE =
  'upgrade despite these findings: the version is a pre-release; kubelets are too old; kubelets cannot be listed; the kubelet configuration has settings that the new version lacks. The upgrade deletes such settings. Implies --yes';

/** The last word is the version, as with kubeadm. */
function phaseRequest(args: readonly string[], options: CommandOptions): WithPlan<UpgradeApplyRequest> {
  const last = args.at(-1) ?? '';
  const isVersion = args.length > 1 && parseKubernetesVersion(last) !== null;
  return applyRequest(isVersion ? args.slice(0, -1) : args, isVersion ? last : undefined, options);
}

function applyRequest(names: readonly string[], version: string | undefined, options: CommandOptions): WithPlan<UpgradeApplyRequest> {
  return {
    config: flagText(options, 'config'),
    flags: { ...kubeadmFlags(options), ...(version === undefined ? {} : { version }) },
    cluster: kubeconfigRequest(options),
    hosts: hostsRequest(options),
    fields: fieldsRequest(options),
    plan: planRequest(options),
    run: kubeletRunRequest(options, phaseName(names)),
    writing: writingRequest(options, 'upgrade apply'),
    forget: false,
    yes: options.yes === true,
  };
}

const APPLY_EXAMPLES = `  # show what changes, then upgrade the first control plane
  kubeletadm upgrade apply v1.36.2 --host cp1 --dry-run
  kubeletadm upgrade apply v1.36.2 --host cp1
  # then the other control planes, one after the other, and the workers
  kubeletadm upgrade node --host cp2
  kubeletadm upgrade node --host worker1 --host worker2`;

/** `upgrade apply VERSION` and `upgrade apply phase NAME... VERSION`. */
async function runUpgradeApply(services: Services, request: WithPlan<UpgradeApplyRequest>): Promise<ExitCode> {
  const [{ encodeYaml }, { openUpgradeApply }, { upgradeDone }, { runOnHosts }, { nextCommands }] = await Promise.all([
    import('../codec/yaml-encode.ts'),
    import('../fleet/use-cases/open-upgrade-apply.ts'),
    import('./kubeadm-output.ts'),
    import('./run-on-hosts.ts'),
    import('./new-cluster.ts'),
  ]);
  const { output, ssh } = await nextCommands(services, request.hosts);
  return runOnHosts(services, request, {
    title: 'upgrade apply',
    open: (scope) =>
      openUpgradeApply(services, request, {
        ...scope,
        confirm: async (version, planned) => services.confirm(`${await question(version, planned)} [y/N] `),
        showConfig: (cluster) => services.output.stdout(encodeYaml(cluster)),
      }),
    applied: ({ version, run, left }) => {
      if (isSinglePhase(run)) return;
      const isComplete = left.length === 0;
      output.stdout(services.programName === 'kubeadm' && isComplete ? upgradeDone(version) : upgradeResult(version, left, ssh));
    },
  });
}

/**
 * @param left skipped phases without which the control plane is not upgraded or not verified
 * @param ssh options that repeat the connection
 */
export function upgradeResult(version: string, left: readonly string[], ssh: readonly string[] = []): string {
  const release = releaseOfVersion(version);
  if (left.length > 0) return joinLines(['', `This control plane was not completely upgraded to ${release}: skipped ${left.join(', ')}.`]);
  return joinLines([
    '',
    `This control plane was upgraded to ${release}.`,
    `Upgrade the other control planes next, one after the other, then the workers: ${['kubeletadm upgrade node --host HOST', ...ssh].join(' ')}`,
  ]);
}

/** Names what the plan does, the version and the size of the plan, which --dry-run shows in full. */
async function question(version: string, { host }: PlannedWorkflow): Promise<string> {
  const [{ isClusterChange }, { isRecovery }] = await Promise.all([
    import('../host/plan/change.ts'),
    import('../kubeadm/workflows/upgrade/recover-upgrade.ts'),
  ]);
  const changes = host.phases.flatMap(({ plan }) => plan.changes);
  const objects = changes.filter(isClusterChange).length;
  const counts = `${changes.length - objects} changes on ${host.name}, ${objects} in the cluster; --dry-run shows them`;
  if (isRecovery(host)) return `Roll back the interrupted upgrade of the control plane? (${counts})`;
  return `Upgrade the control plane to ${releaseOfVersion(version)}? (${counts})`;
}

/** `upgrade node` and `upgrade node phase NAME...`. */
async function runUpgradeNode(services: Services, request: WithPlan<UpgradeNodeRequest> & PageFlags): Promise<ExitCode> {
  const [{ openUpgradeNode }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-upgrade-node.ts'),
    import('./run-on-hosts.ts'),
  ]);
  const { report, serve, writing } = request;
  const page = { command: 'upgrade node', subject: '', reason: writing?.note?.reason, report, serve };
  const { exitCode } = await withPage(services, page, async (shown) => ({
    failure: null,
    exitCode: await runOnHosts(services, request, {
      title: 'upgrade node',
      open: (scope) => openUpgradeNode(services, request, scope),
      page: shown,
    }),
  }));
  return exitCode;
}
