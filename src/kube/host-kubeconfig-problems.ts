import type { Position, Problem } from '../base/errors.ts';

interface Place {
  readonly host: string;
  readonly position: Position;
  /** For example `users[0].user.exec`. */
  readonly field: string;
  /** How to fix it, a sentence without a final full stop. */
  readonly hint: string;
}

/** A kubeconfig on a host sets a field that must not be honoured on the local host. `why` is a clause. */
export function hostKubeconfigRefused({ host, position, field, hint }: Place, why: string): Problem {
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
export function hostKubeconfigUnusable({ host, position, field, hint }: Place, why: string): Problem {
  return { code: 'HOST_KUBECONFIG_UNUSABLE', host, position, path: field, message: why, hint: hint };
}
