import { type Command, Option } from 'commander';
import type { CommandOptions, On } from './command.ts';
import type { FleetResetRequest } from './fleet-reset.ts';
import { addFleetHostOptions } from './fleet-run-command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { addIgnoredChecks, addKubeconfigOptions, outputOption } from './options.ts';
import { connectionRequest, flagText, fleetRequest, ignoredChecks, kubeconfigRequest, outputRequest, runRequest } from './request-parts.ts';
import { addRolloutOptions, rulesRequest } from './rollout-options.ts';
import { addLockOption, writingRequest } from './writing-options.ts';

/** `fleet reset`. */
export function defineFleetReset(reset: Command, on: On): void {
  reset
    .option('-y, --yes', 'do not ask before resetting')
    .option('--force', 'same as --yes')
    .option('--cert-dir <dir>', 'directory of the certificates (default: /etc/kubernetes/pki)')
    .option('--cleanup-tmp-dir', 'also empty /etc/kubernetes/tmp');
  addOptionGroup(reset, HEADINGS.output, (output) =>
    output
      .option('--dry-run', 'print the plan; change nothing')
      .addOption(outputOption(['text', 'json'], 'output format; json: the plan of a dry run, otherwise one event per line'))
      .option('--exit-code', 'with --dry-run: exit with code 6 if changes are pending'),
  );
  addOptionGroup(reset, HEADINGS.cluster, (cluster) =>
    cluster.option(
      '--delete-node',
      'stop the kubelets and delete the Nodes, without draining them; needs the kubeconfig of an administrator',
    ),
  );
  addRolloutOptions(reset, { canary: '1', maxUnavailable: 'the value of --parallel' });
  addOptionGroup(reset, HEADINGS.rollout, (rollout) =>
    rollout.addOption(new Option('--retry <result>', 'reset only the hosts that failed in the last reset').choices(['failed'])),
  );
  addKubeconfigOptions(addIgnoredChecks(addFleetHostOptions(reset)), KUBECONFIG);
  on(addLockOption(reset), resetRequest, async () => (await import('./fleet-reset.ts')).runFleetReset);
  addSections(reset, { notes: NOTES, examples: EXAMPLES });
}

const KUBECONFIG =
  'with --delete-node: kubeconfig of an administrator (default: that of the fleet file, otherwise KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf)';

function resetRequest(_: readonly string[], options: CommandOptions): FleetResetRequest {
  return {
    hosts: { ...fleetRequest(options), connection: connectionRequest(options) },
    rules: rulesRequest(options),
    writing: writingRequest(options),
    run: { ...runRequest(options), ignorePreflightErrors: ignoredChecks(options) },
    isApproved: options.yes === true || options.force === true,
    retriesFailed: options.retry !== undefined,
    deleteNodes: options.deleteNode === true ? kubeconfigRequest(options) : null,
    cleanupTmpDir: options.cleanupTmpDir === true,
    certificatesDir: flagText(options, 'certDir'),
    output: outputRequest(options),
    failsIfChanged: options.exitCode === true,
  };
}

const NOTES =
  'The workers are reset first, then the control planes one by one; the control plane listed first in the file is reset last. If all control planes are selected and the reset of any other host fails, the control plane listed first is not reset.';

const EXAMPLES = `  # the files and services that would be removed
  kubeletadm fleet reset -f fleet.yaml --group edge --dry-run
  kubeletadm fleet reset -f fleet.yaml --limit worker-3 --delete-node
  kubeletadm fleet reset --retry failed --yes`;
