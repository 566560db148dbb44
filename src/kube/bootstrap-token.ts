import { Secret } from '../base/text/secret.ts';

/** The two parts of a bootstrap token: the id is public, the secret is not. */
export interface BootstrapTokenParts {
  readonly id: string;
  readonly secret: Secret;
}

/** Splits a bootstrap token `[a-z0-9]{6}.[a-z0-9]{16}`; null: the text is none. */
export function partsOfToken(token: Secret): BootstrapTokenParts | null {
  const [, id, secret] = /^([a-z0-9]{6})\.([a-z0-9]{16})$/.exec(token.reveal()) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret: new Secret(secret) };
}
