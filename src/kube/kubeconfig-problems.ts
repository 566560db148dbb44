import { AppError, type AppErrorOptions, type Position, type Problem } from '../base/errors.ts';

export function kubeconfigInvalid(message: string, position: Position, hint?: string, path?: string): Problem {
  return { code: 'KUBECONFIG_INVALID', message, position, path, hint };
}

export function kubeconfigNoContext(position: Position, known: readonly string[]): Problem {
  const hint =
    known.length === 0 ? 'Check that this is the right file' : `Set current-context, or pass --context with one of: ${known.join(', ')}`;
  return { code: 'KUBECONFIG_NO_CONTEXT', message: 'the kubeconfig has no current-context', position, hint };
}

export function kubeconfigNotFound(
  what: 'context' | 'cluster' | 'user',
  name: string,
  position: Position,
  known: readonly string[],
): Problem {
  const hint =
    known.length === 0 ? `The file has no ${what}` : `Existing ${what}s: ${known.map((each) => JSON.stringify(each)).join(', ')}`;
  return { code: 'KUBECONFIG_INVALID', message: `the kubeconfig has no ${what} ${JSON.stringify(name)}`, position, hint };
}

/** The kubeconfig cannot be read. `why` is a clause ("does not exist"). */
export function kubeconfigUnreadable(file: string, why: string, options: AppErrorOptions): AppError {
  const message = `cannot read the kubeconfig ${file}: ${why}`;
  const hint = 'Check the path, or pass another file with --kubeconfig';
  return new AppError({ code: 'KUBECONFIG_FILE_UNREADABLE', message, hint }, { exitCode: 2, ...options });
}

export function kubeconfigReferenceUnreadable(
  { file, field, path, why }: { readonly file: string; readonly field: string; readonly path: string; readonly why: string },
  options: AppErrorOptions,
): AppError {
  const message = `${file}: cannot read ${path} (${field}): ${why}`;
  const hint = 'Check the path. A relative path is resolved against the directory of the kubeconfig';
  return new AppError({ code: 'KUBECONFIG_FILE_UNREADABLE', message, hint }, { exitCode: 2, ...options });
}

/** A kubeconfig below another root directory names a program, which would run outside of that directory. */
export function kubeconfigPluginRefused(plugin: {
  readonly user: string;
  readonly field: 'exec' | 'auth-provider';
  readonly position: Position;
  readonly directory: string;
}): AppError {
  const { user, field, position, directory } = plugin;
  const message = `user ${JSON.stringify(user)}: the credential plugin (${field}) is not used, because it would run outside --rootfs ${directory}`;
  const hint = `Pass a kubeconfig with a client certificate or a token, or run the command inside the directory with chroot ${directory}`;
  return new AppError({ code: 'KUBECONFIG_PLUGIN_REFUSED', message, position, hint }, { exitCode: 2 });
}

/** A kubeconfig on a host sets a field (`users[0].user.exec`) that must not be honoured locally. `why` is a clause. */
export function hostKubeconfigRefused(
  place: { readonly host: string; readonly position: Position; readonly field: string; readonly hint: string },
  why: string,
): Problem {
  const { host, position, field, hint } = place;
  const message = `not allowed in a kubeconfig read from a host: ${why}`;
  return { code: 'HOST_KUBECONFIG_REFUSED', host, position, path: field, message, hint };
}

/** A kubeconfig on a host lacks the CA or the credentials for a connection. `why` is a clause. */
export function hostKubeconfigUnusable(place: Parameters<typeof hostKubeconfigRefused>[0], why: string): Problem {
  const { host, position, field, hint } = place;
  return { code: 'HOST_KUBECONFIG_UNUSABLE', host, position, path: field, message: why, hint };
}
