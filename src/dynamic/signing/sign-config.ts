import type { RunTime } from '../../base/clock.ts';
import { AppError } from '../../base/errors.ts';
import {
  CONFIG_SIGNATURE_NAMESPACE,
  formatStatement,
  SIGNATURE_KEY,
  type SignedStatement,
  STATEMENT_KEY,
  statementOf,
} from './statement.ts';

/** Signatures made with the SSH keys of the user. */
export interface ConfigSigner {
  /**
   * Signs a text with `ssh-keygen`. A passphrase is requested on the terminal.
   * @returns the armored signature, or the message of ssh-keygen
   */
  signWithSsh(
    text: string,
    signing: { readonly key: string; readonly namespace: string },
  ): Promise<{ readonly signature: string } | { readonly issue: string }>;
}

/** Ports for signing. */
export type SigningPorts = ConfigSigner & Pick<RunTime, 'clock'>;

/** `--sign` and the options that belong to it. */
export interface SigningRequest {
  /** Path of the private key, or of the public key of a key held by ssh-agent. */
  readonly key: string;
  /** Null: the time in milliseconds since 1970. */
  readonly revision: number | null;
  /** Patterns of node names; null: the assigned nodes, or all. */
  readonly nodes: readonly string[] | null;
}

/**
 * Signs the data of a ConfigMap.
 * @returns the two keys to add to the ConfigMap
 * @throws AppError DYNAMIC_NOT_SIGNED (exit code 2)
 */
export async function signConfig(
  { signWithSsh, clock }: SigningPorts,
  about: Pick<SignedStatement, 'namespace' | 'name' | 'key' | 'nodes'> & { readonly data: Readonly<Record<string, string>> },
  { key, revision }: Pick<SigningRequest, 'key' | 'revision'>,
): Promise<Readonly<Record<string, string>>> {
  const { data, ...subject } = about;
  const text = formatStatement(statementOf({ ...subject, revision: revision ?? clock.now().getTime() }, data));
  const signed = await signWithSsh(text, { key, namespace: CONFIG_SIGNATURE_NAMESPACE });
  if ('signature' in signed) return { [STATEMENT_KEY]: text, [SIGNATURE_KEY]: signed.signature };
  throw new AppError(
    {
      code: 'DYNAMIC_NOT_SIGNED',
      message: `cannot sign the ConfigMap with ${key}, so the ConfigMap was not stored: ${signed.issue}`,
      hint: 'Pass the file of a private key, or of a public key if ssh-agent has the private key. Signing needs ssh-keygen of OpenSSH 8.1 or later',
    },
    { exitCode: 2 },
  );
}
