import { AppError, type Position, type Problem } from '../base/errors.ts';
import { printable } from '../base/text/printable.ts';

/** A malformed patch: wrong structure, unknown directive or operation. */
export function patchInvalid(message: string, path = ''): AppError {
  return patchError({ code: 'PATCH_INVALID', message, ...(path === '' ? {} : { path }) });
}

/** A valid patch that does not fit its target. */
export function patchNotApplicable(message: string, path = ''): AppError {
  return patchError({ code: 'PATCH_NOT_APPLICABLE', message, ...(path === '' ? {} : { path }) });
}

export function patchTestFailed(message: string): AppError {
  return patchError({ code: 'PATCH_TEST_FAILED', message });
}

function patchError(problem: Problem): AppError {
  return new AppError(problem, { exitCode: 2 });
}

export function patchFileInvalid(file: string, message: string): Problem {
  return { code: 'PATCH_FILE_TYPE', message, position: { file, line: 1, column: 1 } };
}

/** A patch file name whose patch type is ignored, because it follows a dot. */
export function patchFileNameHint(file: string): Problem {
  const message = 'the patch type after the first dot is ignored: the file is applied as a strategic merge patch';
  const hint = 'Put the type before the first dot, as in kubeletconfiguration0+json.yaml';
  return { code: 'PATCH_FILE_NAME', message, hint, severity: 'warning', position: { file, line: 1, column: 1 } };
}

export function patchFileSeparator(position: Position, text: string): Problem {
  const message = `text after the document separator ---: ${JSON.stringify(printable(text, 60))}`;
  return { code: 'PATCH_FILE_SEPARATOR', message, hint: 'Move the text to a new line', position };
}
