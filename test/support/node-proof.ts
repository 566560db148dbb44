import { createPrivateKey, sign } from 'node:crypto';
import { createCa, type KeyPair, type Validity } from '../../lab/api-server/pki.ts';
import type { CommandFact } from '../../src/host/facts/query.ts';
import type { NodeTrust } from '../../src/kubeadm/workflows/node/identify-node.ts';
import { readCertificateChain } from '../../src/x509/read-certificate.ts';

const CA = await createCa('kubernetes', {
  notBefore: new Date('2020-01-01T00:00:00Z'),
  notAfter: new Date('2040-01-01T00:00:00Z'),
});

/** The CA of the clusters of tests, PEM. */
export const CLIENT_CA_PEM = CA.certPem;

/** A client certificate of a kubelet, issued by that CA. */
export function kubeletCredentials(nodeName: string, validity: Validity = {}): Promise<KeyPair> {
  const years = { notBefore: new Date('2025-01-01T00:00:00Z'), notAfter: new Date('2039-01-01T00:00:00Z'), ...validity };
  return CA.issueClient({ commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] }, years);
}

/** Whether a command of a fake host requests the proof of its Node. */
export function isProof(argv: readonly string[]): boolean {
  return argv[2]?.includes('openssl dgst -sha256 -sign') === true;
}

/** The answer of a host that has the key. */
export function provesNode({ certPem, keyPem }: KeyPair, stdin: string): Partial<CommandFact> {
  const signature = sign('sha256', Buffer.from(stdin.trimEnd()), createPrivateKey(keyPem)).toString('base64');
  return { stdout: `source /var/lib/kubelet/pki/kubelet-client-current.pem\n${certPem}\nsignature ${signature}\n` };
}

/** Trust in that CA; nonces are unique. */
export function testTrust(): NodeTrust {
  let count = 0;
  const cas = readCertificateChain(CLIENT_CA_PEM) ?? [];
  return { cas: async () => cas, newNonce: async () => `nonce-${++count}`, nameHint: 'name its Node with --node-name' };
}
