import { z } from 'zod';
import { parseJsonObject } from '../../base/json.ts';
import type { Signer } from '../../ssh/signer.ts';

/** The signed configuration that a node accepted last. Its file survives restarts of the agent and `dynamic enable`. */
export interface AcceptedRevision {
  readonly revision: number;
  /** SHA-256 of the signed statement. */
  readonly statement: string;
  /** SHA-256 of the file of signers with which the signature was verified. */
  readonly signers: string;
  readonly signer: Signer;
}

const ACCEPTED = z.strictObject({
  revision: z.int().positive(),
  statement: z.string(),
  signers: z.string(),
  signer: z.strictObject({ fingerprint: z.string(), principal: z.string().optional(), pattern: z.string().optional() }),
});

export function formatAccepted({ revision, statement, signers, signer }: AcceptedRevision): string {
  return `${JSON.stringify({ revision, statement, signers, signer })}\n`;
}

/** Null: the file is damaged. */
export function parseAccepted(text: string): AcceptedRevision | null {
  return ACCEPTED.safeParse(parseJsonObject(text)).data ?? null;
}
