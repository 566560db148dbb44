/** A page of the documentation that explains codes of problems, as Markdown. */
export interface ProblemPage {
  /** File name in docs, e.g. `problems-hosts.md`. */
  readonly name: string;
  readonly text: string;
}

/** The explanation of a code, as plain text. */
export interface ProblemEntry {
  /** Codes that have this entry in common, e.g. `HOST_LOCKED`. */
  readonly codes: readonly string[];
  /** Null where the message of the problem is the symptom. */
  readonly symptom: string | null;
  readonly cause: string;
  /** Empty where the commands are the fix. */
  readonly fix: string;
  /** Command lines of the fix. */
  readonly commands: readonly string[];
  /** Page and heading, e.g. `docs/problems-hosts.md#connection`. */
  readonly page: string;
}

/**
 * Rows of tables with code, cause and fix, and sections whose headings are codes, with the list Symptom,
 * Cause, Fix and a block of commands.
 */
export function readProblemEntries(pages: readonly ProblemPage[]): readonly ProblemEntry[] {
  return pages.flatMap(({ name, text }) =>
    `\n${text}`.split('\n## ').flatMap((section) => {
      const [heading = ''] = section.split('\n', 1);
      const page = `docs/${name}#${anchorOf(heading)}`;
      return /^[A-Z]+_/.test(heading) ? [readSection(heading, section, page)] : readRows(section, page);
    }),
  );
}

/** The anchor that GitHub gives a heading. */
export function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function readRows(section: string, page: string): readonly ProblemEntry[] {
  return [...section.matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(([, code = '', cells = '']) => {
    const [cause = '', fix = ''] = cells.split(' | ');
    return { codes: [code], symptom: null, cause: plainText(cause), fix: plainText(fix), commands: [], page };
  });
}

function readSection(heading: string, section: string, page: string): ProblemEntry {
  const commands = section.split('\n```sh\n')[1]?.split('\n```')[0] ?? '';
  const parts = new Map<string, string>();
  for (const [, title = '', text = ''] of section.matchAll(/^- (Symptom|Cause|Fix):(.*(?:\n {2}.*)*)/gm)) {
    const lines = text.split(/\n {2}(?=- )/).map((line) => plainText(line.split(/\s+/).join(' ').trim()));
    parts.set(title, capitalized(lines.join('\n')));
  }
  return {
    codes: heading.split(', '),
    symptom: parts.get('Symptom') ?? null,
    cause: parts.get('Cause') ?? '',
    fix: parts.get('Fix') ?? '',
    commands: commands === '' ? [] : commands.split('\n'),
    page,
  };
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Markdown as text for a terminal: links show their target, a cell with nothing but code has no backticks. */
function plainText(markdown: string): string {
  const text = markdown.replace(/\[([^[\]]*)\]\(([^()]*)\)/g, (_, label: string, target: string) =>
    /^[\w-]+\.md/.test(label) ? `docs/${target}` : `${label} (docs/${target})`,
  );
  return /^`[^`]*`$/.test(text) ? text.slice(1, -1) : text;
}

/**
 * The entry of a code as a user copies it: in brackets, in any case, as `ERROR Port-10250` of a preflight
 * check, or with the item of a check (`FileAvailable--etc-kubernetes-admin.conf`).
 */
export function findProblemEntry(code: string, entries: readonly ProblemEntry[]): ProblemEntry | null {
  const name = bareCode(code);
  const find = (wanted: string): ProblemEntry | undefined =>
    entries.find(({ codes }) => codes.some((each) => each.toLowerCase() === wanted.toLowerCase()));
  return find(name) ?? find(name.replace(/-.*$/s, '')) ?? null;
}

/** Codes that contain a text, in any case; in alphabetical order. */
export function matchingProblemCodes(part: string, entries: readonly ProblemEntry[]): readonly string[] {
  const wanted = bareCode(part).toLowerCase();
  const codes = entries.flatMap((entry) => entry.codes);
  return codes.filter((code) => code.toLowerCase().includes(wanted)).toSorted();
}

function bareCode(code: string): string {
  return code
    .trim()
    .replace(/^\[(.*)\]:?$/s, '$1')
    .replace(/^(?:ERROR|WARNING) /, '');
}
