import { type Command, Option } from 'commander';
import { type ExitCode, formatProblem, usageError } from '../base/errors.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { joinLines } from '../base/text/styled.ts';
import type { ResetFleetRequest, ResetQuestion, ResetRequest } from '../fleet/use-cases/reset-hosts.ts';
import type { PhaseLists } from '../kubeadm/workflows/phase-lists.ts';
import type { CommandOptions, On } from './command.ts';
import { addFleetHostOptions } from './fleet-options.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import { addHostOptions, addIgnoredChecks, addKubeconfigOptions, addPlanOptions } from './options.ts';
import type { Services } from './output/services.ts';
import type { OutputRequest } from './output/show-document.ts';
import type { WithPlan } from './output/show-plan.ts';
import { diffOption, outputOption } from './output-options.ts';
import { definePhaseCommands, phaseName } from './phase-commands.ts';
import {
  connectionRequest,
  flagNode,
  fleetRequest,
  fleetRunSettings,
  hostsRequest,
  kubeadmFlags,
  kubeconfigRequest,
  outputRequest,
  planRequest,
  runRequest,
} from './request-parts.ts';
import { addHostRolloutOptions, addRolloutOptions, rulesRequest } from './rollout-options.ts';
import { addLockOption, addReasonOption, writingRequest } from './writing-options.ts';

/** `reset`, `reset phase`. */
export function defineReset(reset: Command, on: On, phases: PhaseLists): void {
  const options = (command: Command): Command =>
    addReasonOption(
      addLockOption(
        addHostRolloutOptions(
          addHostOptions(addPlanOptions(addResetOptions(command)), 'directory to reset instead of /; no service is stopped'),
        ),
      ),
    );
  addSections(on(options(reset), resetRequest, runReset), { phases: phases.reset, examples: EXAMPLES });
  const phase = reset
    .command('phase')
    .description('Run one phase of reset, e.g. phase cleanup-node')
    .argument('<name...>', 'name of a phase');
  on(options(phase), resetRequest, runReset);
  definePhaseCommands(phase, phases.reset, {
    run: (command, words) => on(command, (_, given) => resetRequest(words, given), runReset),
  });
}

function addResetOptions(command: Command): Command {
  command
    .option('-f, --force', 'do not ask before resetting')
    .option('--config <file>', "ResetConfiguration document; '-' for standard input")
    .option('--cri-socket <socket>', 'CRI socket of the container runtime (default: detected)')
    .option('--cert-dir <dir>', 'directory of the certificates (default: /etc/kubernetes/pki)')
    .option('--cleanup-tmp-dir', 'also empty /etc/kubernetes/tmp');
  addOptionGroup(command, HEADINGS.cluster, (cluster) =>
    cluster
      .option('--delete-node', 'stop the kubelet and delete the Node, without draining the Node; needs the kubeconfig of an administrator')
      .option('--node-name <name>', 'with --delete-node: name of the Node (default: the name under which the host is registered)'),
  );
  return addKubeconfigOptions(
    command,
    'with --delete-node: kubeconfig of an administrator (default: KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf)',
  );
}

function resetRequest(args: readonly string[], options: CommandOptions): WithPlan<ResetRequest> {
  const nodeName = flagNode(options, 'nodeName');
  if (options.deleteNode !== true && nodeName !== undefined)
    throw usageError('--node-name requires --delete-node', 'Add --delete-node, or omit --node-name');
  return {
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    hosts: hostsRequest(options),
    plan: planRequest(options),
    run: runRequest(options, phaseName(args)),
    rules: rulesRequest(options),
    writing: writingRequest(options, 'reset'),
    force: options.force === true,
    deleteNode: options.deleteNode === true ? { cluster: kubeconfigRequest(options), nodeName } : null,
  };
}

const EXAMPLES = `  # list the files and services that would be removed
  kubeletadm reset --host node2 --dry-run
  # after kubectl drain node2
  kubeletadm reset --host node2 --force --delete-node --kubeconfig admin.conf`;

async function runReset(services: Services, request: WithPlan<ResetRequest>): Promise<ExitCode> {
  const [{ openReset }, { runOnHosts }] = await Promise.all([import('../fleet/use-cases/reset-hosts.ts'), import('./run-on-hosts.ts')]);
  const confirm = (hosts: readonly string[]): Promise<boolean | null> =>
    services.confirm(`Reset ${hosts.join(', ')}? All changes made by init or join are reverted. [y/N] `);
  return runOnHosts(services, request, { title: 'reset', open: (scope) => openReset(services, request, { ...scope, confirm }) });
}

interface FleetResetRequest extends ResetFleetRequest {
  /** JSON: the plan of a dry run, otherwise one event per line. */
  readonly output: OutputRequest;
  /** Exit code 6 for a dry run with pending changes. */
  readonly failsIfChanged: boolean;
}

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
      .addOption(diffOption())
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
  addKubeconfigOptions(addIgnoredChecks(addFleetHostOptions(reset)), FLEET_KUBECONFIG);
  on(addLockOption(reset), fleetResetRequest, runFleetReset);
  addSections(reset, { notes: FLEET_NOTES, examples: FLEET_EXAMPLES });
}

const FLEET_KUBECONFIG =
  'with --delete-node: kubeconfig of an administrator (default: that of the fleet file, otherwise KUBECONFIG, ~/.kube/config, /etc/kubernetes/admin.conf)';

function fleetResetRequest(_: readonly string[], options: CommandOptions): FleetResetRequest {
  const certificatesDir = flagText(options, 'certDir');
  return {
    hosts: { ...fleetRequest(options), connection: connectionRequest(options) },
    rules: rulesRequest(options),
    writing: writingRequest(options),
    run: fleetRunSettings(options),
    isApproved: options.yes === true || options.force === true,
    retriesFailed: options.retry !== undefined,
    deleteNodes: options.deleteNode === true ? kubeconfigRequest(options) : null,
    reset: { cleanupTmpDir: options.cleanupTmpDir === true, ...(certificatesDir === undefined ? {} : { certificatesDir }) },
    output: outputRequest(options),
    failsIfChanged: options.exitCode === true,
  };
}

const FLEET_NOTES =
  'The workers are reset first, then the control planes one by one; the control plane listed first in the file is reset last. If all control planes are selected and the reset of any other host fails, the control plane listed first is not reset.';

const FLEET_EXAMPLES = `  # the files and services that would be removed
  kubeletadm fleet reset -f fleet.yaml --group edge --dry-run
  kubeletadm fleet reset -f fleet.yaml --limit worker-3 --delete-node
  kubeletadm fleet reset --retry failed --yes`;

async function runFleetReset(services: Services, request: FleetResetRequest): Promise<ExitCode> {
  const [{ resetFleet }, { foldedLines, retryLine, summaryLine }, { planDocument }, { renderPlan }, { watchRun }] = await Promise.all([
    import('../fleet/use-cases/reset-hosts.ts'),
    import('./fleet-report.ts'),
    import('../host/plan/document.ts'),
    import('./output/show-plan.ts'),
    import('./watch-run.ts'),
  ]);
  const title = 'fleet reset';
  const { output } = request;
  const { format } = output;
  const { isPending, failure } = await resetFleet(services, request, {
    warning: (problem) => services.output.stderr(`warning: ${formatProblem(problem)}\n`),
    nothing: (retry) => {
      if (format === 'text') services.output.stdout(`${retryLine(retry)}\n`);
    },
    confirm: (question) => services.confirm(questionText(question)),
    plan: () => ({
      ...watchRun(services, output, { title, reads: true }),
      done: ({ outcomes }, cluster) => {
        const plans = outcomes.flatMap(({ plan }) => plan ?? []);
        const hosts = plans.map(({ host }) => host);
        const warnings = plans.flatMap((plan) => plan.warnings);
        services.output.stdout(
          format === 'text'
            ? joinLines([...foldedLines(outcomes, output), summaryLine(outcomes)])
            : renderPlan(planDocument(hosts, warnings, cluster), output),
        );
      },
    }),
    begin: (interruption) => {
      const watch = watchRun(services, output, { title, events: true, interruption });
      return { ...watch, done: watch.showEnd };
    },
  });
  if (failure !== null) throw failure;
  return isPending && request.failsIfChanged ? 6 : 0;
}

function questionText({ hosts, orphans }: ResetQuestion): string {
  const what = hosts.length === 1 ? hosts[0] : `${hosts.length} hosts (${namesText(hosts)})`;
  const left = orphans.length === 0 ? '' : ` No control plane remains for ${namesText(orphans)}.`;
  return `Reset ${what}? All changes made by init or join are reverted.${left} [y/N] `;
}
