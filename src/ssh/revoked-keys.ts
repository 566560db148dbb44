import { decodeStrictBase64 } from '../base/text/base64.ts';
import { hostKeyType, type KnownHostsEntry } from './known-hosts.ts';
import { isPublicKeyForm } from './public-key-form.ts';

/**
 * The content of a RevokedHostKeys file: keys, each revoked for every host, or the reason why the file is
 * unusable.
 */
export type RevokedKeys =
  | { readonly kind: 'keys'; readonly entries: readonly KnownHostsEntry[] }
  | { readonly kind: 'krl' }
  | { readonly kind: 'malformed'; readonly line: number };

const KRL_MAGIC = 'SSHKRL\n\0';

/**
 * Parses a RevokedHostKeys file: public keys, one per line, with comments. A binary key revocation list (KRL)
 * and an invalid line are reported: as in ssh, no host key may be accepted then.
 * @param file its name in the entries, for messages
 * @see ssh_config(5) RevokedHostKeys, openssh authfile.c sshkey_check_revoked
 */
export function parseRevokedKeys(text: string, file: string): RevokedKeys {
  if (text.startsWith(KRL_MAGIC)) return { kind: 'krl' };
  const entries: KnownHostsEntry[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.replace(/^[ \t]+/, '');
    if (line === '' || line.startsWith('#')) continue;
    const [type = '', key = ''] = line.split(/[ \t]+/);
    const bytes = decodeStrictBase64(key);
    if (bytes === null || hostKeyType(bytes) !== type || !isPublicKeyForm(bytes)) return { kind: 'malformed', line: index + 1 };
    entries.push({ file, line: index + 1, marker: 'revoked', hosts: '*', type, blob: bytes.toString('base64') });
  }
  return { kind: 'keys', entries };
}
