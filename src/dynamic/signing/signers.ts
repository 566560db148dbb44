import { z } from 'zod';
import { AppError, type Problem } from '../../base/errors.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { IMPACTS, type Impact } from '../../host/plan/impact.ts';

/** Limits of one signer. Absent members: no limit apart from `--allow` of the agent. */
export interface SignerLimits {
  /** Highest impact of the changes. */
  readonly allow?: Impact | undefined;
  /** Fields of the KubeletConfiguration, each with the fields below it. */
  readonly fields?: readonly string[] | undefined;
}

/** The signers that a node accepts: one file on the node, readable only by root. */
export interface ConfigSigners {
  /** Text of an OpenSSH file. @see ssh-keygen(1), ALLOWED SIGNERS */
  readonly allowedSigners: string;
  /** Public keys that are never accepted, one per line; null: none. */
  readonly revokedKeys: string | null;
  /** Limits by principal: signers without an entry are refused. Null: no signer is limited. */
  readonly limits: Readonly<Record<string, SignerLimits>> | null;
}

const LIMITS = z.record(z.string(), z.strictObject({ allow: z.enum(IMPACTS).optional(), fields: z.array(z.string()).optional() }));
const POLICY = z.strictObject({
  apiVersion: z.literal('kubeletadm.dev/v1alpha1'),
  kind: z.literal('SignerPolicy'),
  signers: LIMITS,
});
const SIGNERS = z.strictObject({ allowedSigners: z.string(), revokedKeys: z.string().nullable(), limits: LIMITS.nullable() });

/** The text of the file on the node. */
export function formatSigners({ allowedSigners, revokedKeys, limits }: ConfigSigners): string {
  return encodeYaml({ allowedSigners, revokedKeys, limits: limits as never });
}

/** Reads the file on the node; null: not such a file. */
export function parseSigners(text: string): ConfigSigners | null {
  return SIGNERS.safeParse(jsonOf(text, 'signers.yaml')).data ?? null;
}

/**
 * Reads the `--signer-policy` file.
 * @throws AppError SIGNERS_INVALID (exit code 2)
 */
export function readSignerPolicy(text: string, file: string): NonNullable<ConfigSigners['limits']> {
  const { data, error } = POLICY.safeParse(jsonOf(text, file));
  if (data !== undefined) return data.signers;
  const [issue] = error?.issues ?? [];
  throw invalid(
    `${file}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not a document of kind SignerPolicy'}`,
    'A policy has apiVersion kubeletadm.dev/v1alpha1, kind SignerPolicy, and under signers an entry for each principal, with allow (an impact class) and fields',
  );
}

/** Longer files could not be passed to ssh-keygen on the node. */
const MAX_CHARACTERS = 64 * 1024;

const KEY = /(?:^|\s)(?:ssh|ecdsa|sk)-[\w@.-]+\s+AAAA[\w+/=]+(?:\s|$)/;

/**
 * Checks a list of allowed signers or of revoked keys: a line that ssh-keygen cannot read would refuse its signer.
 * @throws AppError SIGNERS_INVALID (exit code 2)
 */
export function checkKeyList(text: string, file: string, content: 'allowed signers' | 'revoked keys'): void {
  if (text.length > MAX_CHARACTERS || text.includes('\0'))
    throw invalid(
      `${file} cannot be used as the list of ${content}: ${text.includes('\0') ? 'the file is not text' : `the file has more than ${MAX_CHARACTERS} characters`}`,
      content === 'revoked keys'
        ? 'Pass public keys, one per line; key revocation lists (KRL) are not supported'
        : 'Pass an OpenSSH file of allowed signers, see ssh-keygen(1)',
    );
  const lines = text.split('\n').map((line, i) => ({ line: line.trim(), number: i + 1 }));
  const entries = lines.filter(({ line }) => line !== '' && !line.startsWith('#'));
  const bad = entries.find(({ line }) => !KEY.test(line) || (content === 'allowed signers' && /^(?:ssh|ecdsa|sk)-/.test(line)));
  const form = content === 'allowed signers' ? 'alice@example.com ssh-ed25519 AAAA...' : 'ssh-ed25519 AAAA...';
  if (bad !== undefined)
    throw invalid(`${file}:${bad.number}: the line does not contain a public key in the form: ${form}`, `Fix or remove the line`);
  if (entries.length === 0 && content === 'allowed signers')
    throw invalid(`${file} names no signer`, `Add a line for each signer: ${form}`);
}

function invalid(message: string, hint: string): AppError {
  const problem: Problem = { code: 'SIGNERS_INVALID', message, hint };
  return new AppError(problem, { exitCode: 2 });
}

function jsonOf(text: string, file: string): unknown {
  const { documents, problems } = parseSource(text, file);
  const root = documents[0]?.root ?? null;
  return problems.length > 0 || documents.length !== 1 || root === null ? null : sourceToJson(root);
}
