import type { RunTime } from '../../base/clock.ts';
import { AppError, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import { type PlanSignatures, type PlanSigner, type SignerFiles, signatureFileOf } from '../plan/plan-signatures.ts';
import { isExpired, readPlan, type SavedPlan } from '../plan/saved-plan.ts';

export interface SavedPlanPorts extends Pick<LocalFiles, 'input'>, Pick<RunTime, 'clock'> {
  planSignatures(): Promise<PlanSignatures>;
}

export interface SavedPlanRequest {
  readonly file: string;
  /** One of these signers must have signed the plan; undefined: a signature is not required. */
  readonly signers: SignerFiles | undefined;
}

/**
 * Reads a saved plan once, so that the verified text is the one that is applied.
 * @returns `signer`: null if the signature was not verified
 * @throws AppError with exit code 2: PLAN_NOT_SIGNED, PLAN_SIGNATURE_INVALID; errors of `readPlan`
 */
export async function readSavedPlan(services: SavedPlanPorts, { file, signers }: SavedPlanRequest) {
  const text = await services.input.readText(file);
  const signer = signers === undefined ? null : await verified(services, { file, signers, text });
  return { plan: readPlan(text, file), signer };
}

async function verified(
  { input, planSignatures }: SavedPlanPorts,
  { file, signers, text }: { readonly file: string; readonly signers: SignerFiles; readonly text: string },
): Promise<PlanSigner> {
  if (file === '-') throw usageError('--require-signature: a plan on standard input has no signature file', 'Pass the plan as a file');
  const signature = signatureFileOf(file);
  const { allowedSigners, revokedSigners } = signers;
  if (!(await input.exists(allowedSigners)))
    throw usageError(`--require-signature: ${allowedSigners} does not exist`, 'Pass a file of allowed signers, as in ssh-keygen(1)');
  if (revokedSigners !== undefined && !(await input.exists(revokedSigners)))
    throw usageError(`--revoked-signers: ${revokedSigners} does not exist`, 'Pass a file of revoked keys, which may be empty');
  if (!(await input.exists(signature))) throw notSigned(file, signature);
  return (await planSignatures()).verify(text, { plan: file, signature, ...signers });
}

function notSigned(file: string, signature: string): AppError {
  const message = `${file} is refused: a signature is required, but ${signature} does not exist`;
  const hint = `Sign the plan when it is saved: kubeletadm plan --out ${file} --sign KEY`;
  return new AppError({ code: 'PLAN_NOT_SIGNED', message, hint }, { exitCode: 2 });
}

/**
 * Refuses an expired plan.
 * @throws AppError PLAN_EXPIRED (exit code 2)
 */
export function requireUnexpired(plan: SavedPlan, file: string, now: Date): void {
  if (!isExpired(plan, now)) return;
  const { createdAt, expiresAt } = plan.validity;
  const message = `${file} is refused: the plan of ${createdAt} expired at ${expiresAt}`;
  const hint = 'Plan again with kubeletadm plan --out FILE; --valid-for sets how long a plan may be applied';
  throw new AppError({ code: 'PLAN_EXPIRED', message, hint }, { exitCode: 2 });
}
