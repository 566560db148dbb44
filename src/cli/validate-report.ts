import { formatProblem, type Problem } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import type { FileVerdict } from './output/file-verdict.ts';
import type { Output } from './output/services.ts';
import { encodeSarif } from './sarif.ts';

export type ReportFormat = 'text' | 'json' | 'sarif';

/** A file is valid when it has no errors; warnings are ignored. */
export function isFileValid({ problems }: FileVerdict): boolean {
  return problems.every(({ severity }) => severity === 'warning');
}

/**
 * Prints verdicts. Text: problems on stderr and valid files on stdout. JSON and SARIF: everything on stdout.
 */
export function showVerdicts(verdicts: readonly FileVerdict[], format: ReportFormat, output: Output, version: string): void {
  if (format === 'json') output.stdout(`${printableJson(verdicts.map(encodeVerdict), 2)}\n`);
  else if (format === 'sarif') output.stdout(`${printableJson(encodeSarif(verdicts.flatMap(withFile), version), 2)}\n`);
  else showText(verdicts, output);
}

function showText(verdicts: readonly FileVerdict[], output: Output): void {
  const lines = verdicts.flatMap(({ problems }) => problems.map(formatLine)).join('');
  if (lines !== '') output.stderr(lines);
  const right = verdicts.filter(isFileValid).map(({ file }) => (verdicts.length === 1 ? 'ok\n' : `${file}: ok\n`));
  if (right.length > 0) output.stdout(right.join(''));
}

function formatLine(problem: Problem): string {
  return `${problem.severity === 'warning' ? 'warning: ' : ''}${formatProblem(problem)}\n`;
}

/**
 * One file of the JSON report, a stable interface. Line and column are 0 for problems without a place in the
 * file.
 */
function encodeVerdict(verdict: FileVerdict) {
  const problems = verdict.problems.map(({ severity = 'error', path = '', position, code, message, hint = '' }) => ({
    severity,
    path,
    line: position?.line ?? 0,
    column: position?.column ?? 0,
    rule: code,
    message,
    hint,
  }));
  return { file: verdict.file, ok: isFileValid(verdict), problems };
}

function withFile({ file, problems }: FileVerdict) {
  return problems.map((problem) => ({ file, problem }));
}
