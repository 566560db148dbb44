import { AppError, type Position, type Problem } from '../base/errors.ts';
import { printable } from '../base/text/printable.ts';

/** A patch that is no patch of its type: wrong shape, unknown directive or operation. */
export function patchInvalid(message: string, path = ''): AppError {
  return patchError({ code: 'PATCH_INVALID', message, ...(path === '' ? {} : { path }) });
}

/** A well-formed patch that does not fit the object it is applied to. */
export function patchNotApplicable(message: string, path = ''): AppError {
  return patchError({ code: 'PATCH_NOT_APPLICABLE', message, ...(path === '' ? {} : { path }) });
}

/** A `test` operation of a JSON patch found another value. */
export function patchTestFailed(message: string): AppError {
  return patchError({ code: 'PATCH_TEST_FAILED', message });
}

function patchError(problem: Problem): AppError {
  return new AppError(problem, { exitCode: 2 });
}

/** The name of a patch file cannot be read. */
export function patchFileInvalid(file: string, message: string): Problem {
  return { code: 'PATCH_FILE_TYPE', message, position: { file, line: 1, column: 1 } };
}

/** A file name with a patch type that is not read, because a dot stands in front of it. */
export function patchFileNameHint(file: string): Problem {
  const message = 'the patch type behind a dot is not read: this is taken for a strategic merge patch';
  const hint = 'Put the type before the first dot, as in kubeletconfiguration0+json.yaml';
  return { code: 'PATCH_FILE_NAME', message, hint, severity: 'warning', position: { file, line: 1, column: 1 } };
}

/** Text on a line that separates documents. */
export function patchFileSeparator(position: Position, text: string): Problem {
  const message = `text after the document separator ---: ${JSON.stringify(printable(text, 60))}`;
  return { code: 'PATCH_FILE_SEPARATOR', message, hint: 'Begin a new line', position };
}
