import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import type { MemberWriting } from '../fleet/workflow-member.ts';
import type { CommandOptions } from './command.ts';
import { HEADINGS, underHeading } from './help-layout.ts';
import { flagText } from './read-options.ts';
import type { Services } from './services.ts';

const DEFAULT_CONFIRM_MS = 300_000;
const LEAST_CONFIRM_MS = 10_000;
const MOST_CONFIRM_MS = 86_400_000;

/** `--break-lock`, which every command that changes hosts has. */
export function addLockOption(command: Command): Command {
  return underHeading(command, HEADINGS.rollback, (rollback) =>
    rollback.option('--break-lock', 'remove the lock that another run holds on the host'),
  );
}

/** `--confirm-timeout`, `--no-confirm`, `--break-lock`: for commands that change a running kubelet. */
export function addConfirmOptions(command: Command): Command {
  underHeading(command, HEADINGS.rollback, (rollback) =>
    rollback
      .option(
        '--confirm-timeout <duration>',
        'time limit to verify the kubelet over a new connection, after which the host rolls back automatically (default: 5m for hosts over SSH)',
      )
      .option('--no-confirm', 'apply the change without automatic rollback'),
  );
  return addLockOption(command);
}

/**
 * How hosts are written to by these options.
 * @throws AppError with exit code 2
 */
export function readWriting(services: Services, options: CommandOptions): (target: HostTarget) => Promise<MemberWriting | null> {
  const given = confirmMs(options);
  const { self } = services;
  return async ({ address, member, rootDir }) => {
    if (rootDir !== undefined) return null;
    return {
      owner: { id: await services.newId(), name: self.name, processId: self.id, machine: self.machine },
      breakLock: options.breakLock === true,
      isGone: ({ machine, processId }) => machine === self.machine && processId !== self.id && !self.isRunning(processId),
      confirmMs: given === undefined ? (address === undefined && member === undefined ? null : DEFAULT_CONFIRM_MS) : given,
    };
  };
}

/** Undefined: nothing was said; null: without. */
function confirmMs(options: CommandOptions): number | null | undefined {
  const text = flagText(options, 'confirmTimeout');
  if (options.confirm === false) {
    if (text !== undefined) throw usageError('--no-confirm and --confirm-timeout exclude each other', 'Leave one of them out');
    return null;
  }
  if (text === undefined) return undefined;
  const nanoseconds = parseGoDuration(text);
  const ms = nanoseconds === null ? null : Number(nanoseconds / 1_000_000n);
  if (ms === null || ms < LEAST_CONFIRM_MS || ms > MOST_CONFIRM_MS)
    throw usageError(`--confirm-timeout: invalid duration "${text}": not from 10s to 24h`, 'Write it like --confirm-timeout 5m');
  return ms;
}
