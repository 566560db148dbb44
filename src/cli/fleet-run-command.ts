import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import type { SignerFiles } from '../fleet/plan/plan-signatures.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import type { CommandOptions, On } from './command.ts';
import type { FleetApplyRequest } from './fleet-apply.ts';
import type { FleetDriftRequest } from './fleet-drift.ts';
import type { FleetExecRequest } from './fleet-exec.ts';
import type { FleetPlanRequest } from './fleet-plan.ts';
import type { ShowPlanRequest } from './fleet-plan-show.ts';
import type { FleetStatusRequest } from './fleet-status.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import {
  ALLOW_POD_LOSS,
  addClusterOptions,
  addFleetFileOption,
  addFleetSelectionOptions,
  addIgnoredChecks,
  addShowOrigin,
  addSshOptions,
  addTableOptions,
  allowOption,
  allowText,
  FLEET_COMMAND_TIMEOUT,
  IMPACT_NOTES,
  integerBetween,
  outputOption,
  readOutputOption,
  SECONDS_OF_A_DAY,
  TAKE_OVER,
} from './options.ts';
import {
  allowedImpact,
  connectionRequest,
  flagChoice,
  flagDuration,
  flagNumber,
  flagText,
  fleetRequest,
  ignoredChecks,
  kubeconfigRequest,
  outputRequest,
  planRequest,
  readFormat,
  runRequest,
  tableRequest,
  verbosityOf,
} from './request-parts.ts';
import { addRolloutOptions, canaryOption, DEFAULT_PARALLEL, parallelOf, rulesRequest } from './rollout-options.ts';
import { addConfirmOptions, addReasonOption, writingRequest } from './writing-options.ts';

/** Larger than any usable fleet file. */
const MAX_PARALLEL = 100_000;

/** `fleet plan`, `fleet apply`, `fleet status`, `fleet drift`, `fleet exec`. */
export function defineFleetRun(fleet: Command, on: On): void {
  definePlan(fleet.command('plan').description('Show the changes a fleet file would make to its hosts, without making them'), on);
  defineApply(fleet.command('apply').description('Apply a fleet file or a saved plan'), on);
  defineStatus(
    fleet.command('status').description('Show the kubelet version, configuration, health, Node status and drift of each host'),
    on,
  );
  defineDrift(fleet.command('drift').description('Show where hosts differ from the configuration in the fleet file and the cluster'), on);
  defineExec(fleet.command('exec').description('Run a command as root on every host'), on);
}

function defineStatus(status: Command, on: On): void {
  addOptionGroup(addReport(addTableOptions(status)), HEADINGS.output, (output) =>
    output.option('-w, --watch', 'after the first table, read the hosts again every 10 s and print changed rows until interrupted'),
  );
  addClusterOptions(addFleetHostOptions(status));
  on(
    status,
    (_, options): FleetStatusRequest => ({
      ...fleetRunRequest(options),
      output: { ...tableRequest(options), verbosity: verbosityOf(options) },
      watches: watchesStatus(options),
      report: flagText(options, 'report'),
    }),
    async (...args) => (await import('./fleet-status.ts')).runFleetStatus(...args),
  );
  addSections(status, { examples: STATUS_EXAMPLES });
}

function watchesStatus(options: CommandOptions): boolean {
  if (options.watch === true && options.report !== undefined)
    throw usageError('--watch and --report cannot be combined', 'Omit one of the two');
  return options.watch === true;
}

function defineDrift(drift: Command, on: On): void {
  addOptionGroup(drift, HEADINGS.output, (output) =>
    output
      .addOption(readOutputOption())
      .option('--exit-code', 'exit with code 6 if a host has drifted')
      .option('--diff', 'show the changes that apply would make'),
  );
  on(
    addRunOptions(drift),
    (_, options): FleetDriftRequest => ({
      ...fleetRunRequest(options),
      output: { format: readFormat(options), verbosity: verbosityOf(options) },
      showsDiff: options.diff === true,
      failsIfDrifted: options.exitCode === true,
    }),
    async (...args) => (await import('./fleet-drift.ts')).runFleetDrift(...args),
  );
  addSections(drift, { examples: DRIFT_EXAMPLES });
}

function defineExec(exec: Command, on: On): void {
  addFleetHostOptions(
    exec
      .argument(
        '<command...>',
        "command and its arguments, after --; a single argument is run by a shell on the host, e.g. 'journalctl -u kubelet | tail -1'",
      )
      .option('--timeout <seconds>', 'time limit of the command on each host', integerBetween(1, SECONDS_OF_A_DAY), 60)
      .addOption(outputOption(['text', 'json'], 'output format; json: one object per host')),
    {
      commandTimeout:
        'time limit for each command that kubeletadm itself runs on a host (default: ssh.commandTimeout of the fleet file, otherwise 1m0s)',
    },
  );
  on(exec, execRequest, async (...args) => (await import('./fleet-exec.ts')).runFleetExec(...args));
  addSections(exec, { examples: EXEC_EXAMPLES });
}

/** `plan`, `fleet plan`. */
export function definePlan(plan: Command, on: On): void {
  addOptionGroup(plan, HEADINGS.rollout, (rollout) => rollout.addOption(canaryOption()));
  addOptionGroup(plan, HEADINGS.output, (output) =>
    output
      .option('--out <file>', 'file to save the plan to, for apply')
      .option('--valid-for <duration>', 'time after which apply refuses the saved plan, e.g. 8h (default: 24h; 1h with --sign)')
      .option(
        '--sign <key>',
        'file of the SSH key that signs the saved plan: a private key, or a public key whose private key is in ssh-agent. The signature is written next to the plan: plan.json.sig for --out plan.json',
      )
      .addOption(outputOption(['text', 'json', 'yaml']))
      .option('--exit-code', 'exit with code 6 if changes are pending'),
  );
  on(
    addRunOptions(addReport(addShowOrigin(plan)), { allow: PLANNED_ALLOW, allowPodLoss: PLANNED_POD_LOSS }),
    fleetPlanRequest,
    async (...args) => (await import('./fleet-plan.ts')).runFleetPlan(...args),
  );
  defineShow(plan.command('show').description('Print a saved plan with its times of creation and expiration'), on);
  addSections(plan, { notes: PLAN_NOTES, examples: PLAN_EXAMPLES });
}

/** `plan show`, `fleet plan show`. */
function defineShow(show: Command, on: On): void {
  addFleetSelectionOptions(
    addSignerOptions(show.argument('<file>', "saved plan; '-' for standard input").addOption(outputOption(['text', 'json', 'yaml']))),
    { file: 'the saved plan' },
  );
  on(
    show,
    ([file = ''], options): ShowPlanRequest => ({
      file,
      signers: signerFiles(options),
      selection: fleetRequest(options).selection,
      output: outputRequest(options),
    }),
    async (...args) => (await import('./fleet-plan-show.ts')).runShowPlan(...args),
  );
  addSections(show, { examples: SHOW_EXAMPLES });
}

function addSignerOptions(command: Command): Command {
  return command
    .option(
      '--require-signature <file>',
      'file of allowed signers (format: ALLOWED SIGNERS in ssh-keygen(1)); PLAN.sig must be a valid signature of one of them',
    )
    .option(
      '--revoked-signers <file>',
      'with --require-signature: keys that are no longer accepted; a key revocation list of ssh-keygen, or one public key per line',
    );
}

function signerFiles(options: CommandOptions): SignerFiles | undefined {
  const [allowedSigners, revokedSigners] = [flagText(options, 'requireSignature'), flagText(options, 'revokedSigners')];
  if (allowedSigners !== undefined) return { allowedSigners, revokedSigners };
  if (revokedSigners === undefined) return undefined;
  throw usageError('--revoked-signers requires --require-signature', 'Also pass the file of allowed signers with --require-signature');
}

function fleetPlanRequest(_: readonly string[], options: CommandOptions): FleetPlanRequest {
  const [out, signingKey, report] = [flagText(options, 'out'), flagText(options, 'sign'), flagText(options, 'report')];
  if (report !== undefined && report === out) throw usageError('--out and --report name the same file', 'Pass two different files');
  if (signingKey !== undefined && out === undefined)
    throw usageError('--sign requires --out', 'Add --out FILE, the file of the saved plan');
  return {
    ...fleetRunRequest(options),
    output: planRequest(options),
    out,
    report,
    signingKey,
    validForMs: flagDuration(options, 'validFor', { flag: '--valid-for', example: 'Use a duration such as 8h or 30m', least: 1 }),
  };
}

/** `apply`, `fleet apply`. */
export function defineApply(apply: Command, on: On): void {
  apply.argument('[plan]', 'saved plan; a host that changed since the plan was saved is refused (default: apply the fleet file)');
  addRolloutOptions(apply, { canary: canaryOption('1, or the canary of the saved plan'), maxUnavailable: 'the value of --parallel' });
  addOptionGroup(apply, HEADINGS.rollout, (rollout) =>
    rollout
      .option(
        '--replan',
        'for a host that changed since the plan was saved: show the difference and apply a new plan (default: refuse the host)',
      )
      .option('--again', 'reapply a saved plan to hosts that differ from it again after it was applied (default: refuse them)')
      .option(
        '--no-inspect-first',
        'with --yes: do not inspect all hosts before the first is changed; refused hosts are skipped (default: if a reachable host is refused, no host is changed, unless --max-fail permits the number of refused hosts)',
      )
      .addOption(new Option('--retry <result>', 'apply only to the hosts that failed in the last run').choices(['failed'])),
  );
  apply.option(
    '-y, --yes',
    'apply a fleet file without asking (default: show the plan and ask). Without a terminal, this option is required. A saved plan is always applied without asking',
  );
  addSignerOptions(apply);
  addReport(apply.addOption(outputOption(['text', 'json'], 'output format; json: one event per line')));
  on(
    addReasonOption(addConfirmOptions(addRunOptions(apply, APPLY_TEXTS))),
    ([planFile], options): FleetApplyRequest => ({
      ...fleetRunRequest(options),
      planFile,
      isApproved: options.yes === true,
      signers: signerFiles(options),
      inspectsFirst: options.inspectFirst !== false,
      retriesFailed: options.retry !== undefined,
      output: outputRequest(options),
      report: flagText(options, 'report'),
    }),
    async (...args) => (await import('./fleet-apply.ts')).runFleetApply(...args),
  );
  addSections(apply, { notes: APPLY_NOTES, examples: APPLY_EXAMPLES });
}

const APPLY_TEXTS: RunTexts = {
  takeOver: TAKE_OVER,
  bundle: 'file made by kubeletadm bundle create; images and files that a host lacks are copied from it',
  allow: allowText('new-pods-only; for a saved plan, the class that the plan was made with'),
  allowPodLoss: ALLOW_POD_LOSS,
  parallel: 'maximum number of hosts inspected or changed at once',
};

/** `--report`. */
function addReport(command: Command): Command {
  return addOptionGroup(command, HEADINGS.output, (output) =>
    output.option('--report <file>', 'self-contained HTML report to write when the command ends, even if the command fails'),
  );
}

interface FleetTexts {
  /** The text of `--parallel`. */
  readonly parallel?: string;
  /** The text of `--command-timeout`. */
  readonly commandTimeout?: string;
}

/** Selection of hosts, and the connection to the hosts. */
export function addFleetHostOptions(
  command: Command,
  { parallel = 'maximum number of hosts processed at once', commandTimeout = FLEET_COMMAND_TIMEOUT }: FleetTexts = {},
): Command {
  addFleetSelectionOptions(addFleetFileOption(command));
  addOptionGroup(command, HEADINGS.fleet, (fleet) =>
    fleet.option('--parallel <hosts>', parallel, integerBetween(1, MAX_PARALLEL), DEFAULT_PARALLEL),
  );
  return addSshOptions(command, commandTimeout);
}

interface RunTexts extends FleetTexts {
  /** The text of `--take-over`. */
  readonly takeOver?: string;
  /** The text of `--bundle`. */
  readonly bundle?: string;
  /** The text of `--allow`. Absent: the command does not have the option. */
  readonly allow?: string;
  /** The text of `--allow-pod-loss`. Absent: the command does not have the option. */
  readonly allowPodLoss?: string;
}

function addRunOptions(
  command: Command,
  { takeOver = PLANNED_TAKE_OVER, bundle = PLANNED_BUNDLE, allow, allowPodLoss, ...texts }: RunTexts = {},
): Command {
  addIgnoredChecks(command);
  addClusterOptions(addFleetHostOptions(command, texts));
  return addOptionGroup(command, HEADINGS.fleet, (fleet) => {
    fleet.option('--take-over', takeOver);
    fleet.option('--bundle <file>', bundle);
    if (allow !== undefined) fleet.addOption(allowOption(allow));
    return allowPodLoss === undefined ? fleet : fleet.option('--allow-pod-loss', allowPodLoss);
  });
}

const PLANNED_ALLOW =
  'most disruptive class of changes that apply may make to a running kubelet; the classes are explained below (default: new-pods-only)';

const PLANNED_POD_LOSS =
  'also plan changes that terminate running pods or prevent new pods from starting; apply of the saved plan needs no further option';

const PLANNED_BUNDLE = 'bundle that apply will use (a file from kubeletadm bundle create)';

const PLANNED_TAKE_OVER = 'allow a host to join under the name of an existing Node that is not Ready, as apply --take-over does';

function execRequest(args: readonly string[], options: CommandOptions): FleetExecRequest {
  const [only = ''] = args;
  if (args.length === 0)
    throw usageError('no command was given', 'Write the command after --: kubeletadm fleet exec -- systemctl is-active kubelet');
  return {
    ...fleetRequest(options),
    argv: args.length === 1 ? ['sh', '-c', only] : args,
    connection: connectionRequest(options),
    parallel: parallelOf(options),
    timeoutMs: flagNumber(options, 'timeout', 60) * 1000,
    format: flagChoice(options, 'output', ['text', 'json']),
  };
}

function fleetRunRequest(options: CommandOptions): FleetRunRequest {
  return {
    ...fleetRequest(options),
    connection: connectionRequest(options),
    cluster: kubeconfigRequest(options),
    rules: rulesRequest(options, { namesCanary: true }),
    writing: writingRequest(options, 'apply'),
    run: { ...runRequest(options), ignorePreflightErrors: ignoredChecks(options), allow: allowedImpact(options) },
    takeOver: options.takeOver === true,
    replan: options.replan === true,
    again: options.again === true,
    bundle: flagText(options, 'bundle'),
    verbosity: verbosityOf(options),
  };
}

const PLAN_NOTES = `Hosts that are not nodes yet would join the cluster. Existing nodes would get the configuration defined by the fleet file and the cluster.\n\n${IMPACT_NOTES}`;

const PLAN_EXAMPLES = `  kubeletadm plan -f fleet.yaml
  kubeletadm plan -f fleet.yaml --group edge --out plan.json
  # signed with a key of ssh-agent, and valid for a working day
  kubeletadm plan --out plan.json --sign ~/.ssh/id_ed25519.pub --valid-for 8h`;

const SHOW_EXAMPLES = `  kubeletadm plan show plan.json
  kubeletadm plan show plan.json --limit edge-017 -o json`;

const APPLY_NOTES = `Unreachable hosts are reported at the end and do not delay other hosts. After Ctrl-C, the hosts in progress are finished and no other host is changed.\n\n${IMPACT_NOTES}`;

const APPLY_EXAMPLES = `  kubeletadm apply -f fleet.yaml --max-unavailable 10% --max-fail 2
  kubeletadm apply plan.json
  kubeletadm apply plan.json --require-signature allowed_signers`;

const STATUS_EXAMPLES = `  kubeletadm fleet status -f fleet.yaml
  kubeletadm fleet status --group edge -o json
  kubeletadm fleet status -l pool=edge -o jsonpath='{range .hosts[?(@.drift!="none")]}{.host}{"\\n"}{end}'`;

const DRIFT_EXAMPLES = `  # in a cron job: exit code 6 after a manual edit, or if a package overwrote a file
  kubeletadm fleet drift -f fleet.yaml --exit-code
  kubeletadm fleet drift --limit edge-017 --diff`;

const EXEC_EXAMPLES = `  kubeletadm fleet exec -f fleet.yaml -- systemctl is-active kubelet
  kubeletadm fleet exec --group edge -- 'journalctl -u kubelet -n 3 | tail -1'`;
