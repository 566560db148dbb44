/** Format of a bootstrap token, for messages. */
export const TOKEN_FORM = '[a-z0-9]{6}.[a-z0-9]{16}';

/**
 * Whether a text is a bootstrap token: six characters, a dot, sixteen characters of a-z and 0-9
 * (cluster-bootstrap/token/api).
 */
export function isBootstrapToken(text: string): boolean {
  return /^[a-z0-9]{6}\.[a-z0-9]{16}$/.test(text);
}

/** Whether a text is a certificate key: 32 bytes in hex (kubeadm's AES key for the kubeadm-certs Secret). */
export function isCertificateKey(text: string): boolean {
  return /^[0-9a-fA-F]{64}$/.test(text);
}

export const TOKEN_USAGES = ['signing', 'authentication'] as const;

export function isBootstrapGroup(text: string): boolean {
  return /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/.test(text);
}
