import type { Problem } from '../base/errors.ts';

/** A problem and the file it is reported for. */
export interface ReportedProblem {
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
export function encodeSarif(reported: readonly ReportedProblem[], version: string) {
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

function encodeResult(file: string, { code, severity = 'error', message, hint, path, position }: Problem, ids: readonly string[]) {
  const stop = hint === undefined ? '' : `${/[.?!]$/.test(message) ? '' : '.'} ${hint}`;
  return {
    ruleId: code,
    ruleIndex: ids.indexOf(code),
    level: severity,
    message: { text: `${path ? `${path}: ` : ''}${message}${stop}` },
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
