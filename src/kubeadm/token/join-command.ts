import { AppError } from '../../base/errors.ts';
import type { Secret } from '../../base/text/secret.ts';
import { SensitiveText } from '../../base/text/secret.ts';
import type { ClusterServer } from '../../kube/kubeconfig-render.ts';
import { caPinsOf } from '../../x509/ca-pin.ts';

/** How a control plane joins: with the key of the uploaded certificates; null: certificates are copied by hand. */
export interface JoinsAsControlPlane {
  readonly certificateKey: Secret | null;
}

/**
 * The join command as printed by kubeadm, except for the program name. Without a certificate key the line
 * ends in a space, as in kubeadm.
 * @param apiServer address and CAs; all CAs are pinned
 * @param token null: withheld
 * @param controlPlane null: join as a worker
 * @throws AppError CA_CERTIFICATE_INVALID when the CA cannot be read
 * @see kubeadm 1.36 app/cmd/util/join.go
 */
export function joinCommand(
  apiServer: ClusterServer,
  token: Secret | null,
  controlPlane: JoinsAsControlPlane | null = null,
): SensitiveText {
  const pins = caPinsOf(apiServer.caPem);
  if (pins === null) {
    const message = `the CA data of ${apiServer.server} contains no readable certificate`;
    throw new AppError(
      { code: 'CA_CERTIFICATE_INVALID', message, hint: 'Check certificate-authority-data in the kubeconfig' },
      { exitCode: 2 },
    );
  }
  const hashes = pins.map((pin) => `--discovery-token-ca-cert-hash ${pin} `).join('');
  const address = apiServer.server.replaceAll('https://', '');
  const key = controlPlane?.certificateKey;
  const more = controlPlane === null ? [] : ['--control-plane ', ...(key == null ? [] : ['--certificate-key ', key])];
  return new SensitiveText([`kubeletadm join ${address} --token `, token ?? '<value withheld>', ` ${hashes}`, ...more]);
}
