import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import { hasUnprintable } from '../base/text/printable.ts';
import type { WritingRequest } from '../fleet/use-cases/host-writing.ts';
import type { CommandOptions } from './command.ts';
import { addOptionGroup, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';

const LEAST_CONFIRM_MS = 10_000;
const MOST_CONFIRM_MS = 86_400_000;
/** Records and Events are truncated beyond this length. */
const MAX_REASON = 500;

/** `--break-lock`, which every command that changes hosts has. */
export function addLockOption(command: Command): Command {
  return addOptionGroup(command, HEADINGS.rollback, (rollback) =>
    rollback.option('--break-lock', 'remove the lock of the host, even if another run of kubeletadm holds it'),
  );
}

/** `--confirm-timeout`, `--no-confirm`, `--break-lock`: for commands that change a running kubelet. */
export function addConfirmOptions(command: Command): Command {
  addOptionGroup(command, HEADINGS.rollback, (rollback) =>
    rollback
      .option(
        '--confirm-timeout <duration>',
        'time after which the host rolls back a change that kubeletadm has not confirmed over a new connection (default: 5m for hosts over SSH; no automatic rollback on the local host)',
      )
      .option(
        '--no-confirm',
        'keep a change even if kubeletadm cannot confirm it afterwards: no automatic rollback. Does not affect prompts',
      ),
  );
  return addLockOption(command);
}

/** `--reason`: for commands whose changes are recorded on the host. */
export function addReasonOption(command: Command): Command {
  addNotifyOption(command);
  return addOptionGroup(command, HEADINGS.rollback, (rollback) =>
    rollback.option('--reason <text>', 'reason of the change, recorded on each changed host; kubeletadm fleet history shows it'),
  );
}

/** `--notify`. */
export function addNotifyOption(command: Command): Command {
  return addOptionGroup(command, HEADINGS.output, (output) =>
    output.option(
      '--notify <command>',
      'shell command to run when the command ends, with a JSON summary on its standard input; its failure is a warning',
    ),
  );
}

/**
 * `--break-lock`, `--confirm-timeout`, `--no-confirm` and `--reason`.
 * @param command the name under which the changes are recorded on the host; absent: they are not recorded
 * @throws AppError USAGE (exit code 2)
 */
export function writingRequest(options: CommandOptions, command?: string): WritingRequest {
  const note = command === undefined ? undefined : { command, reason: readReason(options) };
  return { breakLock: options.breakLock === true, confirmMs: confirmMs(options), note };
}

/**
 * `--reason`: a text of one line.
 * @throws AppError USAGE (exit code 2)
 */
export function readReason(options: CommandOptions): string | undefined {
  const reason = flagText(options, 'reason')?.trim();
  if (reason === undefined) return undefined;
  if (reason === '') throw usageError('--reason: the text is empty', 'Write the reason of the change, for example a ticket');
  if (reason.length > MAX_REASON)
    throw usageError(
      `--reason: the text has ${reason.length} characters, the maximum is ${MAX_REASON}`,
      'Shorten it, for example to a ticket',
    );
  if (hasUnprintable(reason) || /[\t\n]/.test(reason))
    throw usageError('--reason: the text has line breaks or control characters', 'Write the reason in one line');
  return reason;
}

/** Undefined: not given; null: disabled by --no-confirm. */
function confirmMs(options: CommandOptions): number | null | undefined {
  const text = flagText(options, 'confirmTimeout');
  if (options.confirm === false) {
    if (text !== undefined) throw usageError('--no-confirm and --confirm-timeout cannot be combined', 'Omit one of the two');
    return null;
  }
  if (text === undefined) return undefined;
  const nanoseconds = parseGoDuration(text);
  const ms = nanoseconds === null ? null : Number(nanoseconds / 1_000_000n);
  if (ms === null || ms < LEAST_CONFIRM_MS || ms > MOST_CONFIRM_MS)
    throw usageError(`--confirm-timeout ${text} is not a duration from 10s to 24h`, 'Use a duration such as --confirm-timeout 5m');
  return ms;
}

/**
 * `--to` of an undo. @param history the command that shows the ids
 * @throws AppError USAGE (exit code 2)
 */
export function undoIdOf(options: CommandOptions, history = 'fleet history'): string | undefined {
  const id = flagText(options, 'to');
  if (id === undefined || id === 'oldest' || /^[0-9a-f]{4,}(?:-[0-9]+)?$/.test(id)) return id;
  throw usageError(`--to ${id} is not the id of a run`, `Pass an id of kubeletadm ${history}, with at least 4 characters, or oldest`);
}
