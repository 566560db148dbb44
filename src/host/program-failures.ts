import { AppError } from '../base/errors.ts';
import { printable } from '../base/text/printable.ts';
import { CommitGoneError, HostLockedError, hostShuttingDown } from './commit/commit-problems.ts';
import { REFUSED_EXIT, SHUTDOWN_EXIT } from './commit/commit-program.ts';
import { parseLockHolder, parseRecord } from './commit/record.ts';
import type { CommandFact } from './facts/query.ts';
import { describeFailed } from './operation-kinds.ts';
import { INCOMPLETE_EXIT, type ProgramOperation } from './remote-program.ts';

function lastLine(text: string): string {
  return printable(text.trim().split('\n').at(-1) ?? '', 300);
}

/** The error of a program that ended before its last operation or query. */
export function brokenOff(host: string, exitCode: number | null, stderr: string): AppError {
  if (exitCode === null || exitCode > 128) {
    const signal = exitCode === null ? 'a signal' : `signal ${exitCode - 128}`;
    const message = `${signal} killed the program that kubeletadm runs on the host`;
    const hint = 'Check whether the host is short of memory or is shutting down, then rerun the command';
    return new AppError({ host, code: 'HOST_PROGRAM_KILLED', message, hint }, { detail: stderr });
  }
  const why = lastLine(stderr) || `exited with code ${exitCode}`;
  const message = `the program that kubeletadm runs on the host was aborted: ${why}`;
  const isIncomplete = exitCode === INCOMPLETE_EXIT;
  const hint = isIncomplete ? 'The program was not started. Rerun the command' : 'Check that the host has /bin/sh and coreutils or busybox';
  return new AppError({ host, code: 'HOST_PROGRAM_BROKEN', message, hint }, { detail: stderr });
}

export function cannotRead(host: string, path: string, stderr: string): AppError {
  return failed(host, `cannot read ${path}`, stderr);
}

const FAILURES: readonly (readonly [pattern: RegExp, code: string, hint: string])[] = [
  [/No space left on device|Disk quota exceeded|bytes could be written/i, 'HOST_NO_SPACE', 'Free disk space, then rerun the command'],
  [/Read-only file system/i, 'HOST_READ_ONLY', 'Remount the file system read-write, then rerun the command'],
  [/Permission denied|Operation not permitted/i, 'HOST_PERMISSION_DENIED', 'Run as root, or allow the SSH user to use sudo'],
];

export function operationFailed(host: string, operation: ProgramOperation, { exitCode, stdout, stderr }: CommandFact): AppError {
  if (operation.kind === 'revert-commit' && exitCode === SHUTDOWN_EXIT) return hostShuttingDown(host, describeFailure(operation));
  const refused = exitCode === REFUSED_EXIT ? refusal(host, operation, stdout) : null;
  return refused ?? failed(host, describeFailure(operation), stderr || stdout);
}

function refusal(host: string, operation: ProgramOperation, stdout: string): AppError | null {
  switch (operation.kind) {
    case 'take-lock': {
      const holder = parseLockHolder(stdout);
      return holder && new HostLockedError(host, holder);
    }
    case 'arm-revert':
    case 'check-commit':
    case 'confirm-commit':
    case 'revert-commit':
      return new CommitGoneError(host, parseRecord(stdout), describeFailure(operation));
    default:
      return null;
  }
}

/** The reason is the line of a known cause: what follows it may come from undoing the started work. */
function failed(host: string, what: string, stderr: string): AppError {
  const [pattern, code = 'HOST_OPERATION_FAILED', hint = 'Fix the cause, then rerun the command'] =
    FAILURES.find(([pattern]) => pattern.test(stderr)) ?? [];
  const cause = stderr.split('\n').find((line) => pattern?.test(line)) ?? stderr;
  const message = `${what}: ${lastLine(cause) || 'the program printed no error message'}`;
  return new AppError({ host, code, message, hint }, { detail: stderr });
}

function describeFailure(operation: ProgramOperation): string {
  const isPart = operation.kind === 'piece' || operation.kind === 'begin-upload' || operation.kind === 'upload-piece';
  return isPart ? `cannot write ${operation.path}` : describeFailed(operation);
}
