import { formatProblem, type Problem } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { type Annotation, type JUnitCase, renderAnnotations, renderJUnit } from './output/ci-formats.ts';
import type { FileVerdict } from './output/file-verdict.ts';
import type { Output } from './output/services.ts';
import type { REPORT_FORMATS } from './output-options.ts';

export type ReportFormat = (typeof REPORT_FORMATS)[number];

/** A file is valid when it has no errors; warnings are ignored. */
export function isFileValid({ problems }: FileVerdict): boolean {
  return problems.every(({ severity }) => severity === 'warning');
}

/** Prints verdicts. Text: problems on stderr and valid files on stdout. Other formats: everything on stdout. */
export function showVerdicts(verdicts: readonly FileVerdict[], format: ReportFormat, output: Output, version: string): void {
  if (format === 'json') output.stdout(`${printableJson(verdicts.map(encodeVerdict), 2)}\n`);
  else if (format === 'sarif') output.stdout(`${printableJson(encodeSarif(verdicts.flatMap(withFile), version), 2)}\n`);
  else if (format === 'junit') output.stdout(renderJUnit('kubeletadm validate', verdicts.map(testCaseOf)));
  else if (format === 'github') output.stdout(renderAnnotations(verdicts.flatMap(withFile).map(annotationOf)));
  else showText(verdicts, output);
}

function testCaseOf({ file, problems }: FileVerdict): JUnitCase {
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  const warnings = problems.filter(({ severity }) => severity === 'warning').map(formatProblem);
  return {
    name: file,
    file: file === '-' ? undefined : file,
    failures: errors.map((problem) => ({ type: problem.code, message: formatProblem(problem) })),
    output: warnings,
  };
}

function annotationOf({ file, problem }: ReportedProblem): Annotation {
  const { code, severity = 'error', position } = problem;
  const { line, column } = position ?? {};
  return { severity, file: file === '-' ? undefined : file, line, column, title: code, message: textOf(problem) };
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

/** A problem and the file it is reported for. */
interface ReportedProblem {
  /** A path with `/`, or `-` for standard input. */
  readonly file: string;
  readonly problem: Problem;
}

/**
 * Problems as a SARIF log with one run, the input format of code scanners.
 * @param version of this program
 * @see SARIF 2.1.0 (OASIS), and the requirements of GitHub code scanning: a rule for each result, places with
 * line and column
 */
function encodeSarif(reported: readonly ReportedProblem[], version: string) {
  const ids = [...new Set(reported.map(({ problem }) => problem.code))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'kubeletadm', semanticVersion: version, rules: ids.map(encodeRule) } },
        columnKind: 'utf16CodeUnits',
        results: reported.map(({ file, problem }) => encodeResult(file, problem, ids)),
      },
    ],
  };
}

function encodeRule(id: string) {
  const words = id
    .replace(/^(?:CONFIG|KUBELET|INPUT)_/, '')
    .toLowerCase()
    .replaceAll('_', ' ');
  return {
    id,
    name: id.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase()),
    shortDescription: { text: words },
    fullDescription: { text: `A configuration file of a node breaks the rule "${words}"` },
    help: { text: 'Each result names the field, the error and the fix.' },
  };
}

/** The problem without its place and code. */
function textOf({ message, hint, path }: Problem): string {
  const stop = hint === undefined ? '' : `${/[.?!]$/.test(message) ? '' : '.'} ${hint}`;
  return `${path ? `${path}: ` : ''}${message}${stop}`;
}

function encodeResult(file: string, problem: Problem, ids: readonly string[]) {
  const { code, severity = 'error', path, position } = problem;
  return {
    ruleId: code,
    ruleIndex: ids.indexOf(code),
    level: severity,
    message: { text: textOf(problem) },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: fileUri(file) },
          region: { startLine: position?.line ?? 1, startColumn: position?.column ?? 1 },
        },
        ...(path ? { logicalLocations: [{ fullyQualifiedName: path }] } : {}),
      },
    ],
  };
}

/** Relative paths stay relative: scanners resolve them from the root of the repository. */
function fileUri(file: string): string {
  const encoded = file
    .replace(/^\.\//, '')
    .split('/')
    .map((part) => encodeURIComponent(part))
    .join('/');
  return encoded.startsWith('/') ? `file://${encoded}` : encoded;
}
