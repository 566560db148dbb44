import type { Command } from 'commander';
import { parseKubernetesVersion } from '../base/kubernetes-version.ts';
import type { PhaseHelp } from '../kubeadm/workflows/phase-help.ts';
import type { CommandOptions, On, Run } from './command.ts';
import { addSections } from './help-layout.ts';
import {
  addAllowOptions,
  addKubeconfigOptions,
  addPlanOptions,
  addShowOrigin,
  addSshOptions,
  addTargetOption,
  IMPACT_NOTES,
} from './options.ts';
import { definePhaseCommands, SINGLE_UPGRADE_PHASES } from './phase-commands.ts';
import { phaseName } from './phase-name.ts';
import { fieldsRequest, flagText, hostsRequest, kubeadmFlags, kubeconfigRequest, kubeletRunRequest, planRequest } from './request-parts.ts';
import type { UpgradeApplyCommandRequest } from './upgrade-apply.ts';
import { CONTROL_PLANE_HOST_HELP } from './upgrade-plan-command.ts';
import { addConfirmOptions, addReasonOption, writingRequest } from './writing-options.ts';

const VERSION = 'version to upgrade to, e.g. v1.36.2 (default: kubernetesVersion of --config)';

/** `upgrade apply`, `upgrade apply phase`. */
export function defineUpgradeApply(upgrade: Command, on: On, phases: readonly PhaseHelp[]): void {
  const run: Run<UpgradeApplyCommandRequest> = async (...args) => (await import('./upgrade-apply.ts')).runUpgradeApply(...args);
  const apply = upgrade
    .command('apply')
    .usage('[options] [version]')
    .argument('[version]', VERSION)
    .description('Upgrade the first control plane and the configuration of the cluster');
  addSections(
    on(applyOptions(apply), (args, options) => applyRequest([], args[0], options), run),
    {
      notes: IMPACT_NOTES,
      phases,
      examples: EXAMPLES,
    },
  );
  const phase = apply
    .command('phase')
    .description('Run one phase of upgrade apply. Example: upgrade apply phase addon coredns v1.36.2 runs the phase addon/coredns')
    .argument('<name...>', 'name of a phase, and the version to upgrade to, e.g. control-plane v1.36.2');
  on(applyOptions(phase), phaseRequest, run);
  definePhaseCommands(phase, phases, {
    single: SINGLE_UPGRADE_PHASES,
    run: (command, words) => on(command.argument('[version]', VERSION), (args, given) => applyRequest(words, args[0], given), run),
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
export function addControlPlaneOptions(command: Command): Command {
  return command
    .option('--certificate-renewal', 'renew the certificates of the upgraded components (default: true)')
    .option('--no-certificate-renewal', 'keep the certificates')
    .option('--etcd-upgrade', 'upgrade etcd (default: true)')
    .option('--no-etcd-upgrade', 'keep the current etcd, and make no backup of its data');
}

const FORCE =
  'upgrade despite these findings: the version is a pre-release; kubelets are too old; kubelets cannot be listed; the kubelet configuration has settings that the new version lacks. The upgrade deletes such settings. Implies --yes';

/** The last word is the version, as with kubeadm. */
function phaseRequest(args: readonly string[], options: CommandOptions): UpgradeApplyCommandRequest {
  const last = args.at(-1) ?? '';
  const isVersion = args.length > 1 && parseKubernetesVersion(last) !== null;
  return applyRequest(isVersion ? args.slice(0, -1) : args, isVersion ? last : undefined, options);
}

function applyRequest(names: readonly string[], version: string | undefined, options: CommandOptions): UpgradeApplyCommandRequest {
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

const EXAMPLES = `  # show what changes, then upgrade the first control plane
  kubeletadm upgrade apply v1.36.2 --host cp1 --dry-run
  kubeletadm upgrade apply v1.36.2 --host cp1
  # then the other control planes, one after the other, and the workers
  kubeletadm upgrade node --host cp2
  kubeletadm upgrade node --host worker1 --host worker2`;
