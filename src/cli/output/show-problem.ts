import { AppError, type ExitCode, firstMessage, formatProblem } from '../../base/errors.ts';
import { styled, type Text } from '../../base/text/styled.ts';
import { lineWidth, wrapLine } from '../../base/text/wrap-line.ts';
import { foldProblems } from './fold-problems.ts';
import type { Output } from './services.ts';

/**
 * Prints the problems, a line for those that differ only in their hosts, and returns the exit code. `-v 5` adds details and the stack. An error
 * that is not an AppError is reported as a bug of kubeletadm.
 */
export function showProblem(error: unknown, output: Pick<Output, 'stderr' | 'width'>, verbosity: number): ExitCode {
  if (!(error instanceof AppError)) {
    const text = error instanceof Error ? (verbosity >= 5 ? (error.stack ?? error.message) : error.message) : String(error);
    const more = verbosity >= 5 ? '' : ' with the output of -v 5';
    output.stderr([styled('red', 'bug:'), ` ${oneLine(text, verbosity)}. Please report this error${more} [INTERNAL]\n`]);
    return 1;
  }
  // A "no" is no error: the line has no code.
  if (error.code === 'DECLINED') {
    output.stderr(`${firstMessage(error)}\n`);
    return error.exitCode;
  }
  for (const problem of foldProblems(error.problems)) output.stderr(problemText(oneLine(formatProblem(problem), verbosity), output));
  if (verbosity >= 5) {
    if (error.detail !== undefined && error.detail.trim() !== '') output.stderr(`${error.detail.trimEnd()}\n`);
    output.stderr(`${error.stack ?? ''}\n`);
    if (error.cause instanceof Error) output.stderr(`caused by: ${error.cause.stack ?? error.cause.message}\n`);
  }
  return error.exitCode;
}

/** On a terminal with the word `error:`, and wrapped at spaces. */
function problemText(text: string, output: Pick<Output, 'width'>): Text {
  if (output.width === undefined) return `${text}\n`;
  const word = 'error: ';
  return [styled('red', word), `${wrapLine(text, { width: lineWidth(output), before: word.length })}\n`];
}

function oneLine(text: string, verbosity: number): string {
  if (verbosity >= 5) return text;
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}
