import { AppError, type AppErrorOptions, type Position, type Problem } from '../base/errors.ts';

/** A kubeconfig that names something it does not have, or lacks something needed to use it. */
export function kubeconfigInvalid(message: string, position: Position, hint?: string, path?: string): Problem {
  return {
    code: 'KUBECONFIG_INVALID',
    message,
    position,
    ...(path === undefined ? {} : { path }),
    ...(hint === undefined ? {} : { hint }),
  };
}

/** No context was asked for and the file chooses none. */
export function kubeconfigNoContext(position: Position, known: readonly string[]): Problem {
  const hint = known.length === 0 ? 'Check that this is the right file' : `Choose one of its contexts: ${known.join(', ')}`;
  return { code: 'KUBECONFIG_NO_CONTEXT', message: 'the kubeconfig has no current-context', position, hint };
}

/** The context, cluster or user that should be used is not in the file. */
export function kubeconfigNotFound(
  what: 'context' | 'cluster' | 'user',
  name: string,
  position: Position,
  known: readonly string[],
): Problem {
  const hint = known.length === 0 ? `The file has no ${what} at all` : `It has: ${known.map((each) => JSON.stringify(each)).join(', ')}`;
  return { code: 'KUBECONFIG_INVALID', message: `the kubeconfig has no ${what} ${JSON.stringify(name)}`, position, hint };
}

/** The kubeconfig itself can't be read. `why` is a clause ("it does not exist"). */
export function kubeconfigUnreadable(file: string, why: string, options: AppErrorOptions): AppError {
  const message = `cannot read the kubeconfig ${file}: ${why}`;
  const hint = 'Name another one with --kubeconfig';
  return new AppError({ code: 'KUBECONFIG_FILE_UNREADABLE', message, hint }, { exitCode: 2, ...options });
}

/** A file the kubeconfig refers to can't be read. */
export function kubeconfigReferenceUnreadable(
  { file, field, path, why }: { readonly file: string; readonly field: string; readonly path: string; readonly why: string },
  options: AppErrorOptions,
): AppError {
  const message = `${file}: ${field} names ${path}, which can't be read: ${why}`;
  const hint = 'Relative paths count from the folder of the kubeconfig';
  return new AppError({ code: 'KUBECONFIG_FILE_UNREADABLE', message, hint }, { exitCode: 2, ...options });
}
