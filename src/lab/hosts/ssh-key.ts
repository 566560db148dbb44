import ssh2 from 'ssh2';

export interface SshKey {
  /** PEM of OpenSSH. */
  readonly private: string;
  /** As in authorized_keys. */
  readonly public: string;
}

/** A new Ed25519 key. ssh2 1.17 writes one in some hundred so that nobody can read it: those are thrown away. */
export function newSshKey(comment: string): SshKey {
  for (;;) {
    const key = ssh2.utils.generateKeyPairSync('ed25519', { comment });
    if (!(ssh2.utils.parseKey(key.private) instanceof Error)) return key;
  }
}
