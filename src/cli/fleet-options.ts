import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import type { Selection } from '../fleet/file/select.ts';
import type { SignerFiles } from '../fleet/plan/plan-signatures.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import { addDrainOptions, allowOption } from './allow-options.ts';
import type { CommandOptions } from './command.ts';
import { addOptionGroup, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import {
  addClusterOptions,
  addFleetFileOption,
  addFleetSelectionOptions,
  addIgnoredChecks,
  addSshOptions,
  FLEET_COMMAND_TIMEOUT,
  integerBetween,
} from './options.ts';
import {
  allowedImpact,
  connectionRequest,
  fleetRequest,
  fleetRunSettings,
  hostAddress,
  kubeconfigRequest,
  verbosityOf,
} from './request-parts.ts';
import { DEFAULT_PARALLEL, rulesRequest } from './rollout-options.ts';
import { writingRequest } from './writing-options.ts';

/** Larger than any usable fleet file. */
const MAX_PARALLEL = 100_000;

export function addSignerOptions(command: Command): Command {
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

export function signerFiles(options: CommandOptions): SignerFiles | undefined {
  const [allowedSigners, revokedSigners] = [flagText(options, 'requireSignature'), flagText(options, 'revokedSigners')];
  if (allowedSigners !== undefined) return { allowedSigners, revokedSigners };
  if (revokedSigners === undefined) return undefined;
  throw usageError('--revoked-signers requires --require-signature', 'Also pass the file of allowed signers with --require-signature');
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

export interface RunTexts extends FleetTexts {
  /** The text of `--take-over`. */
  readonly takeOver?: string;
  /** The text of `--bundle`. */
  readonly bundle?: string;
  /** The text of `--allow`. Absent: the command does not have the option. */
  readonly allow?: string;
  /** The text of `--allow-pod-loss`. Absent: the command does not have the option. */
  readonly allowPodLoss?: string;
}

export function addRunOptions(
  command: Command,
  { takeOver = PLANNED_TAKE_OVER, bundle = PLANNED_BUNDLE, allow, allowPodLoss, ...texts }: RunTexts = {},
): Command {
  addIgnoredChecks(command);
  addClusterOptions(addFleetHostOptions(command, texts));
  if (allow !== undefined) addDrainOptions(command);
  return addOptionGroup(command, HEADINGS.fleet, (fleet) => {
    fleet.option('--take-over', takeOver);
    fleet.option('--bundle <file>', bundle);
    if (allow !== undefined) fleet.addOption(allowOption(allow));
    return allowPodLoss === undefined ? fleet : fleet.option('--allow-pod-loss', allowPodLoss);
  });
}

const PLANNED_BUNDLE = 'bundle that apply will use (a file from kubeletadm bundle create)';

const PLANNED_TAKE_OVER = 'allow a host to join under the name of an existing Node that is not Ready, as apply --take-over does';

export function fleetRunRequest(options: CommandOptions): FleetRunRequest {
  return {
    ...fleetRequest(options),
    connection: connectionRequest(options),
    cluster: kubeconfigRequest(options),
    rules: rulesRequest(options, { namesCanary: true }),
    writing: writingRequest(options, 'apply'),
    run: { ...fleetRunSettings(options), allow: allowedImpact(options) },
    takeOver: options.takeOver === true,
    replan: options.replan === true,
    again: options.again === true,
    bundle: flagText(options, 'bundle'),
    verbosity: verbosityOf(options),
  };
}

/**
 * The hosts given by name.
 * @throws AppError USAGE (exit code 2) if a selection is given too
 */
export function namedHostsOf(hosts: readonly string[], options: CommandOptions): readonly string[] {
  if (hosts.length > 0 && isSelection(fleetRequest(options).selection))
    throw usageError(
      'host names cannot be combined with --limit, --group or --selector',
      'Pass host names, or select hosts with --limit, --group and --selector',
    );
  return hosts.map(hostAddress);
}

export function isSelection({ limit, groups, selector }: Selection): boolean {
  return limit.length + groups.length > 0 || selector !== undefined;
}
