import { explainNetworkError } from '../../kube/adapters/network-failure.ts';
import { type EtcdCredentials, type EtcdFailure, validateEtcdCredentials } from '../control-plane/etcd-credentials.ts';

const SERVER_EXPIRED =
  'Renew the certificate on the host of this etcd member (kubeletadm certs renew etcd-server), or synchronize the clocks of both hosts';

/**
 * Explains why an etcd member could not be queried.
 * @returns `isTls`: the cause is a certificate of either side, so waiting does not help
 */
export function explainEtcdError(error: unknown, credentials: EtcdCredentials, now: Date): EtcdFailure & { readonly isTls: boolean } {
  const { code = '', message = '' } = error as { readonly code?: string; readonly message?: string };
  const { files } = credentials;
  const plain = explainNetworkError(error);
  const own = validateEtcdCredentials(credentials, now);
  // A server that rejects the client certificate sends an alert or closes the connection.
  if (/ALERT/i.test(`${code} ${message}`) || (own !== null && /ECONNRESET|EPIPE/.test(code))) {
    const why = `etcd rejects the client certificate${own === null ? ` ${files.certificate}` : `: ${own.why}`}`;
    return {
      why,
      hint: own?.hint ?? 'Add the CA that signed the client certificate to the file of the etcd flag --trusted-ca-file',
      isTls: true,
    };
  }
  if (!/CERT|VERIFY|ISSUER|OSSL/.test(code)) return { ...plain, isTls: false };
  if (own !== null) return { ...own, isTls: true };
  if (/OSSL/.test(code)) return { ...plain, isTls: false };
  if (/EXPIRED|NOT_YET_VALID/.test(code)) return { why: plain.why, hint: SERVER_EXPIRED, isTls: true };
  if (/ALTNAME|HOSTNAME/.test(code))
    return {
      why: plain.why,
      hint: 'Renew the certificate on the host of this etcd member: kubeletadm certs renew etcd-server',
      isTls: true,
    };
  const hint = `Put the CA of the etcd cluster into ${files.ca}`;
  return { why: `the server certificate is not signed by the CA in ${files.ca}`, hint, isTls: true };
}
