/**
 * The proof of a valid SSH signature: the key. A signature contains no name; the line of the key in the list of allowed
 * signers has a name, or a pattern, which is not the name of the signer. @see ssh-keygen(1), ALLOWED SIGNERS
 */
export interface Signer {
  /** SHA-256 fingerprint of the key, as ssh-keygen prints it. */
  readonly fingerprint: string;
  /** The name, for example an e-mail address. */
  readonly principal?: string | undefined;
  /** The pattern in place of a name. */
  readonly pattern?: string | undefined;
}

/**
 * The signer that `ssh-keygen -Y verify -I PRINCIPAL` accepted.
 * @param stdout `Good "NAMESPACE" signature for PRINCIPAL with ED25519 key SHA256:...`
 * @see openssh match_pattern_list
 */
export function readSigner(principal: string, stdout: string): Signer {
  const fingerprint = /\bkey (SHA256:\S+)\s*$/.exec(stdout)?.[1] ?? 'unknown';
  return /[*?!]/.test(principal) ? { fingerprint, pattern: principal } : { fingerprint, principal };
}

export function signerName({ principal, pattern }: Signer): string {
  return principal ?? `any signer that matches ${pattern}`;
}
