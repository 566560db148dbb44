import { beforeAll, describe, expect, it } from 'vitest';
import { type CertificateAuthority, createCa, type Validity } from '../../../../lab/api-server/pki.ts';
import { Secret } from '../../../../src/base/text/secret.ts';
import { validateCertificates } from '../../../../src/kubeadm/pki/validate-certificates.ts';
import type { FoundCertificate } from '../../../../src/kubelet/facts/node-certificates.ts';
import { patched } from '../../../support/patched-certificate.ts';

const NOW = new Date('2026-06-01T00:00:00Z');
const YEAR: Required<Validity> = { notBefore: new Date('2026-05-01T00:00:00Z'), notAfter: new Date('2027-05-01T00:00:00Z') };
const NODE = { commonName: 'system:node:w1', organizations: ['system:nodes'] };

describe('validateCertificates', () => {
  let cluster: CertificateAuthority;
  let ca: FoundCertificate;
  beforeAll(async () => {
    cluster = await createCa('kubernetes', { notBefore: new Date('2026-01-01T00:00:00Z') });
    ca = { role: 'ca', path: 'ca.crt', pem: cluster.certPem };
  });
  const client = async (
    validity: Validity = YEAR,
    subject: { commonName: string; organizations?: readonly string[] } = NODE,
    by = cluster,
  ) => {
    const { certPem, keyPem } = await by.issueClient(subject, validity);
    return { role: 'client', path: 'p', pem: certPem + keyPem, key: new Secret(certPem + keyPem) } as const;
  };
  const validate = (found: FoundCertificate, options: { readonly now?: Date | null; readonly withinMs?: number } = {}) => {
    const { now = NOW, withinMs = 0 } = options;
    const [verdict] = validateCertificates({ certificates: [found, ca], now, issue: null }, { withinMs, now: NOW });
    return verdict;
  };

  it('accepts a valid client certificate', async () => {
    expect(validate(await client())).toMatchObject({
      state: 'ok',
      notes: [],
      subject: 'O=system:nodes, CN=system:node:w1',
      issuer: 'CN=kubernetes',
      residualMs: YEAR.notAfter.getTime() - NOW.getTime(),
    });
  });

  it.each<[string, () => Promise<FoundCertificate>, 'error' | 'warning', RegExp]>([
    ['expired', () => client({ ...YEAR, notAfter: new Date('2026-05-31T00:00:00Z') }), 'error', /^expired on 2026-05-31T00:00:00.000Z$/],
    [
      'not valid yet',
      () => client({ ...YEAR, notBefore: new Date('2026-06-02T00:00:00Z') }),
      'error',
      /^not valid before 2026-06-02.*clock/,
    ],
    [
      'renewal overdue',
      () => client({ ...YEAR, notAfter: new Date('2026-06-02T00:00:00Z') }),
      'warning',
      /^96% of its lifetime has passed/,
    ],
    ['embedded in kubelet.conf', async () => ({ ...(await client()), path: '/etc/kubernetes/kubelet.conf' }), 'warning', /^embedded in/],
    [
      'another user',
      () => client(YEAR, { commonName: 'admin', organizations: ['system:masters'] }),
      'error',
      /^its subject is O=system:masters, CN=admin, not a node's$/,
    ],
    ['another CA', async () => client(YEAR, NODE, await createCa('kubernetes')), 'error', /^not issued by the cluster CA/],
    ['no private key', async () => ({ ...(await client()), key: null }), 'error', /^its private key does not exist$/],
    [
      'key of another certificate',
      async () => ({ ...(await client()), key: (await client()).key }),
      'error',
      /^the private key does not match the certificate$/,
    ],
    ['invalid private key', async () => ({ ...(await client()), key: new Secret('x') }), 'error', /^its private key cannot be read$/],
    ['missing file', async () => ({ role: 'client', path: 'p', pem: null }), 'error', /^does not exist$/],
    [
      'a damaged certificate in the file',
      async () => ({ role: 'client', path: 'p', pem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' }),
      'error',
      /^contains a certificate that cannot be read$/,
    ],
    ['no certificate in the file', async () => ({ role: 'client', path: 'p', pem: 'x' }), 'error', /^contains no certificate$/],
    [
      'client certificate for serving',
      async () => ({ ...(await client()), role: 'serving' }),
      'error',
      /^it does not allow server authentication$/,
    ],
    ['leaf certificate as a CA', async () => ({ role: 'ca', path: 'p', pem: (await client()).pem }), 'error', /^not a CA certificate$/],
    [
      'a CA whose key usage does not allow it to sign certificates',
      // The bit string of digitalSignature, keyEncipherment and keyCertSign, without the last one.
      async () => ({ role: 'ca', path: 'p', pem: patched(cluster.certPem, '030202a4', '030205a0') }),
      'error',
      /^not a CA certificate$/,
    ],
  ])('%s', async (_, found, state, note) => {
    const verdict = validate(await found());
    expect(verdict?.state).toBe(state);
    expect(verdict?.notes.join('\n')).toMatch(note);
    expect(verdict?.notes).toHaveLength(1);
  });

  it('reports certificates that expire within the limit, and uses the local clock when the host has none', async () => {
    const found = await client();
    expect(validate(found, { withinMs: 365 * 86_400_000 })?.notes).toEqual(['expires on 2027-05-01T00:00:00.000Z']);
    expect(validate(found, { now: null })?.state).toBe('ok');
    expect(validate(found, { now: new Date('2030-01-01T00:00:00Z') })?.state).toBe('error');
  });

  it('recognizes a serving certificate self-signed by the kubelet', async () => {
    const own = await createCa('w1-ca@1780000000', { notBefore: YEAR.notBefore });
    const { certPem, keyPem } = await own.issueServer(['w1'], { ...YEAR, commonName: 'w1@1780000000' });
    const verdict = validate({ role: 'serving', path: 'kubelet.crt', pem: certPem + own.certPem, key: new Secret(keyPem) });
    expect(verdict).toMatchObject({
      state: 'warning',
      notes: [expect.stringContaining('self-signed by the kubelet: clients cannot verify it')],
    });
  });
});
