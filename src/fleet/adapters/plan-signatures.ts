import { AppError } from '../../base/errors.ts';
import { lastLine, runSshKeygen, signWithSshKeygen } from '../../ssh/adapters/openssh/ssh-keygen.ts';
import { readSigner, signerName } from '../../ssh/signer.ts';
import type { PlanSignatures, SignatureFiles } from '../plan/plan-signatures.ts';

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
      const { signature, allowedSigners, revokedSigners } = files;
      const found = await run(['find-principals', '-s', signature, '-f', allowedSigners], '');
      const principals = found.stdout.split('\n').filter((line) => line !== '');
      if (found.failed || principals.length === 0) throw unknownSigner(files, lastLine(found.stderr));
      let reason = '';
      for (const principal of principals.slice(0, MAX_PRINCIPALS)) {
        const args = ['verify', '-s', signature, '-f', allowedSigners, '-I', principal, '-n', NAMESPACE];
        const { failed, stdout, stderr } = await run(args, text);
        if (failed) {
          reason = lastLine(stderr) || lastLine(stdout);
          continue;
        }
        const signer = readSigner(principal, stdout);
        // ssh-keygen reports a revoked key as any other failure, and fails for a list that it cannot read.
        if (revokedSigners !== undefined && (await run([...args, '-r', revokedSigners], text)).failed)
          throw revokedKey(files, signer.fingerprint, revokedSigners);
        return { fingerprint: signer.fingerprint, principal: signerName(signer) };
      }
      throw doesNotMatch(files, reason);
    },
  };
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

function revokedKey({ plan, signature }: SignatureFiles, fingerprint: string, revokedSigners: string): AppError {
  const message = `${plan} is refused: ${revokedSigners} revokes the key ${fingerprint} of ${signature}, or ssh-keygen cannot read ${revokedSigners}`;
  const hint = `Check that ${revokedSigners} is a key revocation list (KRL) or has one public key per line. If it is valid, ask another allowed signer to sign the plan`;
  return new AppError({ code: 'PLAN_SIGNATURE_INVALID', message, hint }, { exitCode: 2 });
}
