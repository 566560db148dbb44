import { AppError, type ExitCode, formatProblem } from '../core/errors.ts';
import { visible } from '../core/text/printable.ts';
import type { Output } from '../ports/services.ts';

/**
 * Says what went wrong, one line a problem, and gives the exit code. Details and stack come with `-v 5`. What is not an AppError is a bug of ours, and the
 * line says so.
 */
export function showProblem(error: unknown, output: Pick<Output, 'stderr' | 'colour'>, verbosity: number): ExitCode {
  if (!(error instanceof AppError)) {
    const text = error instanceof Error ? (verbosity >= 5 ? (error.stack ?? error.message) : error.message) : String(error);
    output.stderr(
      `${red('bug:', output.colour)} ${oneLine(text, verbosity)}. Please report it${verbosity >= 5 ? '' : ', with what -v 5 says'} [INTERNAL]\n`,
    );
    return 1;
  }
  for (const problem of error.problems) output.stderr(`${oneLine(formatProblem(problem), verbosity)}\n`);
  if (verbosity >= 5) {
    if (error.detail !== undefined && error.detail.trim() !== '') output.stderr(`${visible(error.detail.trimEnd())}\n`);
    output.stderr(`${visible(error.stack ?? '')}\n`);
    if (error.cause instanceof Error) output.stderr(`caused by: ${visible(error.cause.stack ?? error.cause.message)}\n`);
  }
  return error.exitCode;
}

function oneLine(text: string, verbosity: number): string {
  const plain = text.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, ' ');
  return verbosity >= 5 ? plain : plain.replace(/\s*\n\s*/g, ' ');
}

function red(text: string, colour: boolean): string {
  return colour ? `\u001b[31m${text}\u001b[0m` : text;
}
