import { z } from 'zod';
import { AppError, type Problem } from '../../base/errors.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { defineFact, type Fact } from '../../host/facts/fact.ts';
import { IMPACTS } from '../../host/plan/impact.ts';
import { TEMPORARY_DIRECTORY } from '../../host/shell-program.ts';
import { readSigner, type Signer } from '../../ssh/signer.ts';
import { CONFIG_SIGNATURE_NAMESPACE } from './statement.ts';

const LIMITS = z.strictObject({
  /** Highest impact of the changes. */
  allow: z.enum(IMPACTS).optional(),
  /** Fields of the KubeletConfiguration, each with the fields below it. */
  fields: z.array(z.string()).readonly().optional(),
});
const BY_PRINCIPAL = z.record(z.string(), LIMITS);

/** Limits of one signer. Absent members: no limit apart from `--allow` of the agent. */
export type SignerLimits = z.infer<typeof LIMITS>;

const SIGNERS = z.strictObject({
  /** Text of an OpenSSH file. @see ssh-keygen(1), ALLOWED SIGNERS */
  allowedSigners: z.string(),
  /** Public keys that are never accepted, one per line; null: none. */
  revokedKeys: z.string().nullable(),
  /** Limits by principal: signers without an entry are refused. Null: no signer is limited. */
  limits: BY_PRINCIPAL.nullable(),
});

/** The signers that a node accepts: one file on the node, readable only by root. */
export type ConfigSigners = z.infer<typeof SIGNERS>;

const POLICY = z.strictObject({
  apiVersion: z.literal('kubeletadm.dev/v1alpha1'),
  kind: z.literal('SignerPolicy'),
  signers: BY_PRINCIPAL,
});
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

interface SignedText {
  readonly text: string;
  readonly signature: string;
  readonly signers: Omit<ConfigSigners, 'limits'>;
}

/**
 * Verifies a text with the `ssh-keygen -Y` of the host (OpenSSH 8.2 or later).
 * @see openssh PROTOCOL.sshsig
 */
export function signatureVerdict({ text, signature, signers: { allowedSigners, revokedKeys } }: SignedText): Fact<
  | { readonly verdict: 'valid'; readonly signer: Signer }
  /** `cause`: the message of ssh-keygen, or empty. */
  | { readonly verdict: 'unknown-signer' | 'invalid'; readonly cause: string }
  /** ssh-keygen does not exist on the host, or could not be run. */
  | { readonly verdict: 'not-verified'; readonly cause: string }
> {
  if (signature.length > MAX_SIGNATURE || signature.includes('\0'))
    return defineFact({}, () => ({ verdict: 'invalid', cause: 'the signature is not an armored SSH signature' }));
  const argv = ['sh', '-c', VERIFY, 'sh', signature, allowedSigners, revokedKeys ?? '', CONFIG_SIGNATURE_NAMESPACE];
  return defineFact({ reported: { kind: 'command', argv, stdin: text } }, ({ reported: { exitCode, stdout, stderr } }) => {
    const cause = causeIn(stderr);
    if (exitCode === VALID) {
      const [principal = '', ...rest] = stdout.split('\n');
      return { verdict: 'valid', signer: readSigner(principal, rest.join('\n')) };
    }
    if (exitCode === UNKNOWN_SIGNER) return { verdict: 'unknown-signer', cause };
    if (exitCode === INVALID) return { verdict: 'invalid', cause };
    return { verdict: 'not-verified', cause: exitCode === MISSING ? 'ssh-keygen is not installed' : cause || `exit code ${exitCode}` };
  });
}

/** A signature with a certificate chain is a few kilobytes. */
const MAX_SIGNATURE = 32 * 1024;

/** Exit codes of the script. */
const [VALID, UNKNOWN_SIGNER, INVALID, MISSING] = [0, 41, 42, 43] as const;

/**
 * The list names the principals of the key; the first one for which the signature is valid is the signer. Signature and
 * lists are public, so they may be arguments. @see ssh-keygen(1), -Y find-principals, -Y verify
 */
const VERIFY = `umask 077
command -v ssh-keygen >/dev/null 2>&1 || exit ${MISSING}
${TEMPORARY_DIRECTORY} || exit 1
trap 'rm -rf -- "$d"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$d/text" && printf %s "$1" >"$d/signature" && printf '%s\\n' "$2" >"$d/allowed" && printf '%s\\n' "$3" >"$d/revoked" || exit 1
ssh-keygen -Y find-principals -s "$d/signature" -f "$d/allowed" >"$d/principals" 2>"$d/why" </dev/null || { tail -n 3 "$d/why" >&2; exit ${UNKNOWN_SIGNER}; }
while IFS= read -r principal; do
  ssh-keygen -Y verify -s "$d/signature" -f "$d/allowed" -I "$principal" -n "$4" \${3:+-r "$d/revoked"} <"$d/text" >"$d/out" 2>"$d/why" && { printf '%s\\n' "$principal"; cat "$d/out"; exit ${VALID}; }
done <"$d/principals"
tail -n 3 "$d/why" >&2; exit ${INVALID}`;

/** The first line of ssh-keygen that is not its general verdict: `al:1: key has expired: ...`. */
function causeIn(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.trim().replace(/\.$/, ''));
  return (lines.find((line) => line !== '') ?? '').replace(/^\S*\/allowed:(\d+):/, 'line $1 of the allowed signers:');
}

/**
 * A signature that every `ssh-keygen` with this function accepts: the host can verify signatures. The private key was
 * deleted.
 */
export const KNOWN_SIGNATURE: SignedText = {
  text: 'kubeletadm',
  signature: `-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgZYfTGH97ebaMBHmXgv7Ajm/A0u
XpxoKaWJuRqVPKopoAAAAga3ViZWxldGFkbS1jb25maWdAa3ViZWxldGFkbS5kZXYAAAAA
AAAABnNoYTUxMgAAAFMAAAALc3NoLWVkMjU1MTkAAABAnzcAJHBNphFppnZc/thw3zYN0n
sz4jZrP71bDC+2+U6vcs0pKBFYqfen2UhgoeEKXZHKN16EWQ5zNXc6UZhLDg==
-----END SSH SIGNATURE-----
`,
  signers: {
    allowedSigners: 'test@kubeletadm.dev ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGWH0xh/e3m2jAR5l4L+wI5vwNLl6caCmlibkalTyqKa',
    revokedKeys: null,
  },
};
