import { X509Certificate } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';
import { beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../../../lab/api-server/pki.ts';
import { checkServerIdentity } from '../../../../src/kube/adapters/server-identity.ts';

describe('checkServerIdentity', () => {
  let certificate: PeerCertificate;
  beforeAll(async () => {
    const { certPem } = await (await createCa()).issueServer(['fd00::10', '10.0.0.10', 'api.example'], { commonName: '::2' });
    certificate = new X509Certificate(certPem).toLegacyObject() as unknown as PeerCertificate;
  });

  it.each(['fd00::10', 'FD00:0::0010', '10.0.0.10', 'api.example', 'API.example'])('accepts it for %s', (host) => {
    expect(checkServerIdentity(host, certificate)).toBeUndefined();
  });

  it.each(['fd00::11', '::2', '::ffff:10.0.0.10', '10.0.0.11', 'example'])('rejects it for %s', (host) => {
    expect(checkServerIdentity(host, certificate)).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });
});
