import type { Command } from 'commander';
import type { PhaseHelp, PhaseLists } from '../kubeadm/workflows/phase-help.ts';
import type { CommandOptions, On, Run } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import {
  addAllowOptions,
  addKubeconfigOptions,
  addPlanOptions,
  addShowOrigin,
  addSshOptions,
  addTargetOption,
  collect,
  IMPACT_NOTES,
  KUBELET_CONFIG_DIR,
} from './options.ts';
import { definePhaseCommands, SINGLE_UPGRADE_PHASES } from './phase-commands.ts';
import { phaseName } from './phase-name.ts';
import {
  fieldsRequest,
  flagNode,
  flagText,
  hostsRequest,
  kubeadmFlags,
  kubeconfigRequest,
  kubeletRunRequest,
  planRequest,
} from './request-parts.ts';
import { addHostRolloutOptions, rulesRequest } from './rollout-options.ts';
import type { UpgradeNodeCommandRequest } from './upgrade-apply.ts';
import { addControlPlaneOptions, defineUpgradeApply } from './upgrade-apply-command.ts';
import { defineDiff, defineUpgradePlan } from './upgrade-plan-command.ts';
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
  const run: Run<UpgradeNodeCommandRequest> = async (...args) => (await import('./upgrade-apply.ts')).runUpgradeNode(...args);
  const options = (command: Command): Command =>
    addReasonOption(
      addConfirmOptions(
        addHostRolloutOptions(
          addSshOptions(addTargetOption(addAllowOptions(addUpgradeOptions(addShowOrigin(addPlanOptions(command)))))),
          '1',
        ),
      ),
    );
  const node = upgrade
    .command('node')
    .description('Upgrade a node to the version of the cluster: its control plane, if it has one, and its kubelet configuration');
  addSections(on(options(node), upgradeRequest, run), { notes: NOTES, phases, examples: EXAMPLES });
  const phase = node
    .command('phase')
    .description('Run one phase of upgrade node. Example: upgrade node phase addon coredns runs the phase addon/coredns')
    .argument('<name...>', 'name of a phase, e.g. kubelet-config');
  on(options(phase), upgradeRequest, run);
  definePhaseCommands(phase, phases, {
    single: SINGLE_UPGRADE_PHASES,
    run: (command, words) => on(command, (_, given) => upgradeRequest(words, given), run),
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

function upgradeRequest(args: readonly string[], options: CommandOptions): UpgradeNodeCommandRequest {
  return {
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    cluster: kubeconfigRequest(options),
    hosts: hostsRequest(options),
    fields: fieldsRequest(options),
    plan: planRequest(options),
    run: kubeletRunRequest(options, phaseName(args)),
    rules: rulesRequest(options),
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
