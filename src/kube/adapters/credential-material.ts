/** What a kubeconfig holds or names, read from its files; certificates and key are base64 of PEM. */
export interface CredentialMaterial {
  readonly caData?: string;
  readonly certData?: string;
  readonly keyData?: string;
  readonly token?: string;
}
