/** The signer of a plan, as the list of allowed signers names it. */
export interface PlanSigner {
  /** SHA-256 fingerprint of the key, as ssh-keygen prints it. */
  readonly fingerprint: string;
  /** The principal of the list, for example an e-mail address, or a text about the pattern that the list has instead. */
  readonly principal: string;
}

/** The keys that may sign, in files on the local host. */
export interface SignerFiles {
  /** A list of allowed signers. @see ssh-keygen(1), ALLOWED SIGNERS */
  readonly allowedSigners: string;
  /** A key revocation list (KRL), or public keys, one per line. @see ssh-keygen(1), KEY REVOCATION LISTS */
  readonly revokedSigners?: string | undefined;
}

/** Where the signature of a plan and the keys that may sign are stored on the local host. */
export interface SignatureFiles extends SignerFiles {
  /** Name of the plan, for messages. */
  readonly plan: string;
  readonly signature: string;
}

export interface PlanSignatures {
  /**
   * Signs the text of a plan. A passphrase is requested on the terminal; a key held by ssh-agent needs none.
   * @param key path of the private key, or of the public key of a key held by ssh-agent
   * @returns the armored signature
   * @throws AppError PLAN_NOT_SIGNED (exit code 2) with the message of ssh-keygen
   */
  sign(text: string, key: string): Promise<string>;
  /**
   * Verifies the text of a plan.
   * @throws AppError PLAN_SIGNATURE_INVALID (exit code 2): the text or the signature was changed, no allowed signer made
   * the signature, or the key is revoked
   */
  verify(text: string, files: SignatureFiles): Promise<PlanSigner>;
}

export function signatureFileOf(planFile: string): string {
  return `${planFile}.sig`;
}
