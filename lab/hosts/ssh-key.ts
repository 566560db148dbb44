import ssh2 from 'ssh2';

export interface SshKey {
  /** OpenSSH PEM. */
  readonly private: string;
  /** As in authorized_keys. */
  readonly public: string;
}

/**
 * A new Ed25519 key. ssh2 1.17 occasionally (about once in some hundred keys) writes an unreadable one: those
 * are discarded.
 */
export function newSshKey(comment: string): SshKey {
  for (;;) {
    const key = ssh2.utils.generateKeyPairSync('ed25519', { comment });
    if (!(ssh2.utils.parseKey(key.private) instanceof Error)) return key;
  }
}
