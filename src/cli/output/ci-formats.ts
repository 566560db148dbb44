import { replaceUnprintable } from '../../base/text/printable.ts';

/** A finding in a file, for a continuous integration system. */
export interface Annotation {
  readonly severity: 'error' | 'warning';
  /** A path from the root of the repository; undefined: no file, e.g. standard input. */
  readonly file: string | undefined;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly title: string;
  readonly message: string;
}

/**
 * Workflow commands of GitHub Actions, which show each finding at its line of a pull request.
 * @see https://docs.github.com/actions/reference/workflow-commands-for-github-actions
 */
export function renderAnnotations(annotations: readonly Annotation[]): string {
  return annotations
    .map(({ severity, file, line, column, title, message }) => {
      const properties = { file: file?.replace(/^\.\//, ''), line, col: column, title };
      const given = Object.entries(properties).flatMap(([name, value]) =>
        value === undefined ? [] : [`${name}=${encodeProperty(`${value}`)}`],
      );
      return `::${severity} ${given.join(',')}::${encodeData(message)}\n`;
    })
    .join('');
}

function encodeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function encodeProperty(text: string): string {
  return encodeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

/** The result of one file or host. Without a failure and an error, it passed. */
export interface JUnitCase {
  readonly name: string;
  readonly file?: string | undefined;
  /** What is wrong, and its code. */
  readonly failures: readonly { readonly type: string; readonly message: string }[];
  /** Why there is no result. */
  readonly error?: string | undefined;
  /** Warnings. */
  readonly output?: readonly string[] | undefined;
}

/**
 * A JUnit report with one suite, as Jenkins and GitLab read it.
 * @param suite the command
 */
export function renderJUnit(suite: string, cases: readonly JUnitCase[]): string {
  const failures = cases.filter(({ failures }) => failures.length > 0).length;
  const errors = cases.filter(({ error }) => error !== undefined).length;
  const counts = `name="${escapeXml(suite)}" tests="${cases.length}" failures="${failures}" errors="${errors}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites ${counts}>
  <testsuite ${counts}>
${cases.map((one) => renderCase(suite, one)).join('')}  </testsuite>
</testsuites>
`;
}

function renderCase(suite: string, { name, file, failures, error, output = [] }: JUnitCase): string {
  const [first] = failures;
  // Readers expect at most one failure in a test case: it lists all.
  const failed =
    first === undefined
      ? []
      : [
          result(
            'failure',
            { type: first.type, message: first.message },
            failures.map(({ message }) => message),
          ),
        ];
  const missing = error === undefined ? [] : [result('error', { message: error }, [error])];
  const printed = output.length === 0 ? [] : [`      <system-out>${escapeXml(output.join('\n'))}</system-out>\n`];
  const attributes = attributesOf({ classname: suite, name, ...(file === undefined ? {} : { file }) });
  return `    <testcase${attributes}>\n${[...failed, ...missing, ...printed].join('')}    </testcase>\n`;
}

function result(element: string, attributes: Readonly<Record<string, string>>, lines: readonly string[]): string {
  return `      <${element}${attributesOf(attributes)}>${escapeXml(lines.join('\n'))}</${element}>\n`;
}

function attributesOf(attributes: Readonly<Record<string, string>>): string {
  return Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
    .join('');
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** XML 1.0 has no form for most control characters: they are shown as `\x1b`. */
function escapeXml(text: string): string {
  return replaceUnprintable(text, (code) => `\\x${code.toString(16).padStart(2, '0')}`)
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\ufffe\uffff]/g, '\ufffd');
}
