import { defineFact, type Fact } from '../../host/facts/fact.ts';
import { TEMPORARY_DIRECTORY } from '../../host/shell-program.ts';
import { readSigner, type Signer } from '../../ssh/signer.ts';
import type { ConfigSigners } from './signers.ts';
import { CONFIG_SIGNATURE_NAMESPACE } from './statement.ts';

type SignatureVerdict =
  | { readonly verdict: 'valid'; readonly signer: Signer }
  /** `cause`: the message of ssh-keygen, or empty. */
  | { readonly verdict: 'unknown-signer' | 'invalid'; readonly cause: string }
  /** ssh-keygen does not exist on the host, or could not be run. */
  | { readonly verdict: 'not-verified'; readonly cause: string };

interface SignedText {
  readonly text: string;
  /** Armored SSH signature. */
  readonly signature: string;
  readonly signers: Pick<ConfigSigners, 'allowedSigners' | 'revokedKeys'>;
}

/**
 * Verifies a text with the `ssh-keygen -Y` of the host (OpenSSH 8.2 or later).
 * @see openssh PROTOCOL.sshsig
 */
export function signatureVerdict({ text, signature, signers: { allowedSigners, revokedKeys } }: SignedText): Fact<SignatureVerdict> {
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
