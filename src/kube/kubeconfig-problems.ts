import { AppError, type AppErrorOptions, type Position, type Problem } from '../base/errors.ts';

/** A kubeconfig with an invalid or incomplete entry. */
export function kubeconfigInvalid(message: string, position: Position, hint?: string, path?: string): Problem {
  return {
    code: 'KUBECONFIG_INVALID',
    message,
    position,
    path,
    hint,
  };
}

/** No context was requested and the file has no current-context. */
export function kubeconfigNoContext(position: Position, known: readonly string[]): Problem {
  const hint =
    known.length === 0 ? 'Check that this is the right file' : `Set current-context, or pass --context with one of: ${known.join(', ')}`;
  return { code: 'KUBECONFIG_NO_CONTEXT', message: 'the kubeconfig has no current-context', position, hint };
}

/** The requested context, cluster or user is not in the file. */
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

/** A file that the kubeconfig references cannot be read. */
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

interface HostKubeconfigField {
  readonly host: string;
  readonly position: Position;
  /** For example `users[0].user.exec`. */
  readonly field: string;
  /** How to fix it, a sentence without a final full stop. */
  readonly hint: string;
}

/** A kubeconfig on a host sets a field that must not be honoured on the local host. `why` is a clause. */
export function hostKubeconfigRefused({ host, position, field, hint }: HostKubeconfigField, why: string): Problem {
  return {
    code: 'HOST_KUBECONFIG_REFUSED',
    host,
    position,
    path: field,
    message: `not allowed in a kubeconfig read from a host: ${why}`,
    hint: hint,
  };
}

/** A kubeconfig on a host lacks the CA or the credentials for a connection. `why` is a clause. */
export function hostKubeconfigUnusable({ host, position, field, hint }: HostKubeconfigField, why: string): Problem {
  return { code: 'HOST_KUBECONFIG_UNUSABLE', host, position, path: field, message: why, hint: hint };
}
