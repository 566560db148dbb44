import { AppError, formatProblem, type Problem } from '../base/errors.ts';
import { escapeUnprintableInLine } from '../base/text/printable.ts';
import type { Services } from './output/services.ts';

type EditPorts = Pick<Services, 'env' | 'input' | 'writeLocalFile' | 'makeTemporaryDirectory' | 'removeTemporaryDirectory' | 'runEditor'>;

/** An edited text that `validate` accepts. */
export interface EditedText {
  readonly text: string;
  /** Removes the copy of the text. */
  discard(): Promise<void>;
  /** Keeps the copy, and adds its path to an error after which nothing was written. */
  kept(error: AppError): AppError;
}

/** Marks the lines of the editor's file that are not part of the text. Longer if lines of the text begin so. */
const MARK = '#|';

function markFor(text: string): string {
  let mark = MARK;
  while (text.split('\n').some((line) => line.startsWith(mark))) mark += '|';
  return mark;
}

/**
 * Opens a text in the editor of the user (KUBE_EDITOR, else EDITOR, else vi), in a file that only the user can read. An
 * invalid text is opened again with its errors, at the lines of the file as opened, until it is valid.
 * @param subject.notes further lines above the text
 * @param subject.validate the errors of a text; positions without a file are those of the text
 * @returns null: the text is unchanged or empty
 * @throws AppError EDITOR_FAILED; the problems of the text (exit code 2) if it was saved unchanged, with the path of the text
 */
export async function editText(
  ports: EditPorts,
  subject: {
    readonly text: string;
    /** Of the file: `worker-1.yaml`. */
    readonly name: string;
    readonly notes: readonly string[];
    readonly validate: (text: string) => Promise<readonly Problem[]>;
  },
): Promise<EditedText | null> {
  const { text: original, name, validate } = subject;
  const directory = await ports.makeTemporaryDirectory('kubeletadm-edit-');
  const mark = markFor(original);
  const path = `${directory}/${name.replace(/[^\w.-]/g, '_')}`;
  const discard = () => ports.removeTemporaryDirectory(directory);
  const kept = ({ problems, exitCode, detail, cause }: AppError): AppError => {
    const place = `The edited text is kept in ${path}`;
    const [first, ...others] = problems;
    // A declined question is reported without hint.
    const isDeclined = first?.code === 'DECLINED';
    const changed = isDeclined ? { message: `${first.message}. ${place}` } : { hint: [first?.hint, place].filter(Boolean).join('. ') };
    return new AppError(first === undefined ? [] : [{ ...first, ...changed }, ...others], { exitCode, detail, cause });
  };
  let shown = original;
  let problems: readonly Problem[] = [];
  for (;;) {
    await ports.writeLocalFile(path, headerOf(mark, subject, problems) + shown, { isPrivate: true });
    await openEditor(ports, path).catch(async (error: unknown) => {
      if (shown !== original && error instanceof AppError) throw kept(error);
      await discard();
      throw error;
    });
    const text = withoutHeader(mark, await ports.input.readText(path));
    if (text === original || text.trim() === '') {
      await discard();
      return null;
    }
    if (problems.length > 0 && text === shown) throw kept(invalid(problems));
    problems = await validate(text);
    if (problems.length === 0) return { text, discard, kept };
    shown = text;
  }
}

async function openEditor({ env, runEditor }: EditPorts, path: string): Promise<void> {
  const editor = [env.KUBE_EDITOR, env.EDITOR].find((one) => (one ?? '').trim() !== '') ?? 'vi';
  const exitCode = await runEditor(editor, path);
  if (exitCode === 0) return;
  const message = `the editor ${JSON.stringify(editor)} ${exitCode === 127 ? 'was not found' : `failed with exit code ${exitCode}`}: nothing was changed`;
  throw new AppError({ code: 'EDITOR_FAILED', message, hint: 'Set KUBE_EDITOR or EDITOR to the command of an editor' });
}

function headerOf(mark: string, { notes }: { readonly notes: readonly string[] }, problems: readonly Problem[]): string {
  const lines = [
    `Edit the text below, save it, and leave the editor. Lines that begin with "${mark}" are ignored.`,
    'If the text is unchanged or empty, nothing is changed. Otherwise, the plan is shown, and a question follows.',
    ...notes,
  ];
  const errors = problems.length === 0 ? [] : ['', 'The text has errors. To give up, save it without a change:'];
  const height = lines.length + errors.length + problems.length;
  const found = problems.map((problem) => lineOf(problem, height));
  return [...lines, ...errors, ...found]
    .map((line) => `${mark} ${escapeUnprintableInLine(line)}`.trimEnd())
    .join('\n')
    .concat('\n');
}

/** `  12:5 maxPods: must be at least 1. Hint [CODE]`, with the line of the file below a header of this height. */
function lineOf({ position, path, ...problem }: Problem, height: number): string {
  const place = position === undefined ? '' : `${position.line + height}:${position.column}`;
  const where = [place, path ?? ''].filter(Boolean).join(' ');
  return `  ${where}${where === '' ? '' : ': '}${formatProblem(problem)}`.replaceAll('\n', ' ');
}

function withoutHeader(mark: string, text: string): string {
  return text
    .split(/(?<=\n)/)
    .filter((line) => !line.startsWith(mark))
    .join('');
}

function invalid(problems: readonly Problem[]): AppError {
  return new AppError(problems, { exitCode: 2 });
}
