import { AppError } from '../../base/errors.ts';
import { lastLine, runSshKeygen, signWithSshKeygen } from '../../ssh/adapters/openssh/ssh-keygen.ts';
import type { PlanSignatures, PlanSigner, SignatureFiles } from '../plan-signatures.ts';

/** Separates signatures of plans from those that the same key makes for other purposes. */
const NAMESPACE = 'kubeletadm-plan@kubeletadm.dev';

/** A key that is listed more often is a mistake in the list. */
const MAX_PRINCIPALS = 16;

const TIME_LIMIT_MS = 60_000;

/**
 * Signatures of `ssh-keygen -Y` (OpenSSH 8.1 or later for signing, 8.2 for verifying).
 * @see openssh PROTOCOL.sshsig
 */
export function sshKeygenSignatures({ program }: { readonly program?: string } = {}): PlanSignatures {
  const run = (args: readonly string[], input: string) => runSshKeygen(args, input, { program, timeoutMs: TIME_LIMIT_MS });
  return {
    sign: async (text, key) => {
      const signed = await signWithSshKeygen(text, { key, namespace: NAMESPACE }, { program });
      if ('issue' in signed) throw notSigned(key, signed.issue);
      return signed.signature;
    },
    verify: async (text, files) => {
      const { signature, allowedSigners } = files;
      const found = await run(['find-principals', '-s', signature, '-f', allowedSigners], '');
      const principals = found.stdout.split('\n').filter((line) => line !== '');
      if (found.failed || principals.length === 0) throw unknownSigner(files, lastLine(found.stderr));
      let reason = '';
      for (const principal of principals.slice(0, MAX_PRINCIPALS)) {
        const args = ['verify', '-s', signature, '-f', allowedSigners, '-I', principal, '-n', NAMESPACE];
        const { failed, stdout, stderr } = await run(args, text);
        if (!failed) return signerOf(principal, stdout);
        reason = lastLine(stderr) || lastLine(stdout);
      }
      throw doesNotMatch(files, reason);
    },
  };
}

/**
 * A signature names no principal: a pattern of the list, such as `*@example.com`, is not the name of the signer.
 * Reads `Good "NAMESPACE" signature for PRINCIPAL with ED25519 key SHA256:...`.
 * @see ssh-keygen(1), ALLOWED SIGNERS; openssh match_pattern_list
 */
function signerOf(principal: string, stdout: string): PlanSigner {
  const fingerprint = /\bkey (SHA256:\S+)\s*$/.exec(stdout)?.[1] ?? 'unknown';
  return { fingerprint, principal: /[*?!]/.test(principal) ? `any signer that matches ${principal}` : principal };
}

function notSigned(key: string, why: string): AppError {
  const message = `cannot sign the plan with ${key}, so the plan was not saved: ${why}`;
  const hint =
    'Pass the file of a private key, or of a public key if ssh-agent has the private key. Signing needs ssh-keygen of OpenSSH 8.1 or later';
  return new AppError({ code: 'PLAN_NOT_SIGNED', message, hint }, { exitCode: 2 });
}

function unknownSigner({ plan, signature, allowedSigners }: SignatureFiles, why: string): AppError {
  const message = `${plan} is refused: the signature ${signature} was not made by a signer listed in ${allowedSigners}${why === '' ? '' : `: ${why}`}`;
  const hint = `Add the signer's public key to ${allowedSigners}, as described in ssh-keygen(1), or ask an allowed signer to sign the plan`;
  return new AppError({ code: 'PLAN_SIGNATURE_INVALID', message, hint }, { exitCode: 2 });
}

function doesNotMatch({ plan, signature }: SignatureFiles, why: string): AppError {
  const message = `${plan} is refused: the signature ${signature} is not valid for this plan: ${why}`;
  const hint =
    'The plan or its signature was changed after signing, or the key was not valid at this time. Sign a new plan: kubeletadm plan --out FILE --sign KEY';
  return new AppError({ code: 'PLAN_SIGNATURE_INVALID', message, hint }, { exitCode: 2 });
}
