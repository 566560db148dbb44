/** The credentials that a kubeconfig embeds or references; certificates and key are base64 of PEM. */
export interface CredentialMaterial {
  readonly caData?: string;
  readonly certData?: string;
  readonly keyData?: string;
  readonly token?: string;
}
