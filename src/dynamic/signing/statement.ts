import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { RunTime } from '../../base/clock.ts';
import { AppError } from '../../base/errors.ts';
import { parseJsonObject } from '../../base/json.ts';
import type { ConfigSource } from '../../kubelet/layers/config-source.ts';
import { appendHash } from './config-map-hash.ts';

/** Separates signatures of node configurations from those that the same key makes for other purposes. */
export const CONFIG_SIGNATURE_NAMESPACE = 'kubeletadm-config@kubeletadm.dev';

/** Key of a ConfigMap with the signed statement about its other keys. */
export const STATEMENT_KEY = 'kubeletadm-signed.json';
/** Key of a ConfigMap with the armored SSH signature of the statement. */
export const SIGNATURE_KEY = `${STATEMENT_KEY}.sig`;

/** Statement of a signer: this content, as this revision, for these nodes. */
export interface SignedStatement {
  readonly namespace: string;
  /** Name of the ConfigMap, without the hash of `dynamic push`. */
  readonly name: string;
  /** Key of the configuration: another key of the ConfigMap cannot be assigned. */
  readonly key: string;
  /** A node accepts no lower revision than the last accepted one. */
  readonly revision: number;
  /** Names of Nodes, with `*` for any characters. */
  readonly nodes: readonly string[];
  /** SHA-256 of the UTF-8 text of every other key, in hexadecimal digits. */
  readonly sha256: Readonly<Record<string, string>>;
}

type Data = Readonly<Record<string, string>>;

const SIGNED = z.strictObject({
  apiVersion: z.literal('kubeletadm.dev/v1alpha1'),
  kind: z.literal('SignedConfig'),
  configMap: z.strictObject({ namespace: z.string(), name: z.string(), key: z.string() }),
  revision: z.int().positive(),
  nodes: z.array(z.string()).min(1),
  sha256: z.record(z.string(), z.string()),
});

/** The statement about the data of a ConfigMap. */
export function statementOf(about: Omit<SignedStatement, 'sha256'>, data: Data): SignedStatement {
  return { ...about, sha256: Object.fromEntries(contentOf(data).map(([key, text]) => [key, sha256Of(text)])) };
}

/** The text that is signed: the exact bytes are stored in the ConfigMap and verified, so they need no canonical form. */
export function formatStatement({ namespace, name, key, revision, nodes, sha256 }: SignedStatement): string {
  const body = {
    apiVersion: 'kubeletadm.dev/v1alpha1',
    kind: 'SignedConfig',
    configMap: { namespace, name, key },
    revision,
    nodes,
    sha256,
  };
  return `${JSON.stringify(body, null, 2)}\n`;
}

/** Reads a statement; null: not a statement, or of a later version. */
export function parseStatement(text: string): SignedStatement | null {
  const { success, data } = SIGNED.safeParse(parseJsonObject(text));
  if (!success) return null;
  const { configMap, revision, nodes, sha256 } = data;
  return { ...configMap, revision, nodes, sha256 };
}

/**
 * The difference between a statement and the assigned ConfigMap, as a clause; null: the statement is about exactly
 * this ConfigMap, key and node.
 */
export function statementMismatch(
  statement: SignedStatement,
  { source, data, nodeName }: { readonly source: ConfigSource; readonly data: Data; readonly nodeName: string },
): string | null {
  const { namespace, name, key, nodes, sha256 } = statement;
  if (namespace !== source.namespace || ![name, appendHash({ name, data })].includes(source.name))
    return `the signature is for the ConfigMap ${namespace}/${name}, not for ${source.namespace}/${source.name}`;
  if (key !== source.kubeletConfigKey)
    return `the signature is for the key ${JSON.stringify(key)} of the ConfigMap, not for ${JSON.stringify(source.kubeletConfigKey)}`;
  if (!nodes.some((pattern) => matchesName(pattern, nodeName)))
    return `the signature is for other nodes (${nodes.slice(0, SHOWN).join(', ')}${nodes.length > SHOWN ? ', ...' : ''}), not for ${nodeName}`;
  const content = new Map(contentOf(data));
  const added = [...content.keys()].find((one) => !Object.hasOwn(sha256, one));
  if (added !== undefined) return `the key ${JSON.stringify(added)} of the ConfigMap is not signed`;
  const removed = Object.keys(sha256).find((one) => !content.has(one));
  if (removed !== undefined) return `the signed key ${JSON.stringify(removed)} is missing in the ConfigMap`;
  const changed = [...content].find(([one, text]) => sha256[one] !== sha256Of(text))?.[0];
  return changed === undefined ? null : `the key ${JSON.stringify(changed)} of the ConfigMap was changed after signing`;
}

const SHOWN = 5;

export function sha256Of(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Whether a name matches a pattern, in which `*` stands for any characters. */
export function matchesName(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === name;
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= name.length - last.length;
}

function contentOf(data: Data): readonly (readonly [string, string])[] {
  return Object.entries(data).filter(([key]) => key !== STATEMENT_KEY && key !== SIGNATURE_KEY);
}

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
  { signWithSsh, clock }: ConfigSigner & Pick<RunTime, 'clock'>,
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
