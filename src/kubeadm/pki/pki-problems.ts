import type { Problem } from '../../base/errors.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';

const REMOVE_BOTH = (crt: string, key: string): string =>
  `Remove ${crt} and ${key}, then rerun the command: both files are generated again`;

/** @param why a clause about the file */
export function pkiUnreadable(path: string, why: string): Problem {
  return { code: 'PKI_UNREADABLE', message: `${path} ${why}`, hint: 'Replace the file with a valid one' };
}

export function pkiNoKey(path: string, what: 'private key' | 'public key'): Problem {
  return pkiUnreadable(path, `contains no ${what}${what === 'private key' ? ' (RSA or ECDSA, PEM, not encrypted)' : ''}`);
}

export function pkiNotCa(path: string, subject: string): Problem {
  return {
    code: 'PKI_NOT_AUTHORITY',
    message: `${path}: the certificate of ${subject} is not a CA certificate: its basic constraints or its key usage do not allow it to sign certificates`,
    hint: 'Replace the file with the CA certificate',
  };
}

/** @param path the expired object, e.g. its path */
export function pkiExpired(path: string, notAfter: Date, hint: string): Problem {
  return { code: 'PKI_EXPIRED', message: `${path} expired on ${formatRfc3339(notAfter)}`, hint };
}

export function pkiNotYetValid(path: string, notBefore: Date, now: Date): Problem {
  return {
    code: 'PKI_NOT_YET_VALID',
    message: `${path} is not valid before ${formatRfc3339(notBefore)}; the current time is ${formatRfc3339(now)}`,
    hint: 'Synchronize the clock (timedatectl, chronyc)',
  };
}

/** @param crt expected path of the API server certificate */
export function pkiNoControlPlane(crt: string): Problem {
  return {
    code: 'PKI_NO_CONTROL_PLANE',
    message: `no certificate to renew: the host is not a control plane, because ${crt} and the other control plane certificates do not exist`,
    hint: 'Name a control plane with --host, or another directory with --cert-dir. To renew a kubelet certificate, use kubeletadm certs renew-kubelet',
  };
}

export function pkiKeyMismatch(crt: string, key: string, hint = REMOVE_BOTH(crt, key)): Problem {
  return { code: 'PKI_KEY_MISMATCH', message: `${key} does not match ${crt}`, hint };
}

export function pkiKeyMissing(crt: string, key: string): Problem {
  return {
    code: 'PKI_KEY_MISSING',
    message: `${crt} exists, but its private key ${key} does not`,
    hint: `Restore the key. Or remove ${crt} and rerun the command: both files are generated again`,
  };
}

export function pkiForeign(crt: string, key: string, issuer: string, ca: string): Problem {
  return {
    code: 'PKI_FOREIGN',
    message: `${crt} is signed by ${issuer}, not by the CA in ${ca}`,
    hint: REMOVE_BOTH(crt, key),
  };
}

export function pkiUsagesUnknown(crt: string, usages: readonly string[]): Problem {
  const what = usages.length === 0 ? 'has no extended key usage' : `has the extended key usages ${usages.join(', ')}`;
  const message = `${crt} ${what}: kubeletadm cannot generate such a certificate`;
  return { code: 'PKI_USAGES_UNKNOWN', message, hint: 'Renew the certificate with the CA or tool that issued it' };
}

export function pkiNamesMissing(crt: string, key: string, names: readonly string[]): Problem {
  return {
    code: 'PKI_NAMES_MISSING',
    message: `${crt} lacks the SANs ${names.join(', ')}`,
    hint: REMOVE_BOTH(crt, key),
  };
}

/** @param options.isWorker the kubelet has joined a cluster, and the host has no other kubeconfig of a control plane */
export function pkiExternalIncomplete(
  paths: readonly string[],
  { caKey, isWorker }: { readonly caKey: string; readonly isWorker: boolean },
): Problem {
  const copy = 'copy all certificates that it signs to the host';
  const missing = `${paths.join(', ')} cannot be generated without the CA key ${caKey}`;
  return {
    code: 'PKI_EXTERNAL_INCOMPLETE',
    message: isWorker ? `the host has joined a cluster as a worker: ${missing}` : missing,
    hint: isWorker
      ? `For a new cluster, first run kubeletadm reset. If the host is to be a control plane with an external CA, ${copy}`
      : `If the CA is external, ${copy}. Otherwise copy the CA key to the host`,
  };
}

export function pkiCaLost(ca: string, orphans: readonly string[]): Problem {
  return {
    code: 'PKI_AUTHORITY_LOST',
    message: `the CA certificate ${ca} does not exist, but files that depend on it do: ${orphans.join(', ')}`,
    hint: 'Restore the CA certificate and key, or start over with kubeletadm reset',
  };
}

export function pkiCaReplaced(ca: string, foreign: readonly string[]): Problem {
  return {
    code: 'PKI_AUTHORITY_REPLACED',
    message: `the CA ${ca} did not issue the existing files: ${foreign.join(', ')}`,
    hint: 'Restore the CA that issued these files, or start over with kubeletadm reset',
  };
}

export function pkiCaMissing(path: string, ca: string, phase: string): Problem {
  return {
    code: 'PKI_AUTHORITY_MISSING',
    message: `${path} needs the CA ${ca}, which does not exist`,
    hint: `Run the phase ${phase} first`,
  };
}

export function pkiSharedMissing(paths: readonly string[]): Problem {
  return {
    code: 'PKI_SHARED_MISSING',
    message: `${paths.join(', ')}: not found; all control planes must share these files`,
    hint: 'To download the files, pass --certificate-key with the key that kubeletadm init phase upload-certs --upload-certs prints on a control plane. Or copy the files from a control plane',
  };
}

export function pkiSharedDiffers(path: string): Problem {
  return {
    code: 'PKI_SHARED_DIFFERS',
    message: `${path} differs from the file of the cluster`,
    hint: 'If the file is left from another cluster, run kubeletadm reset first',
  };
}

export function pkiUploadExternal(): Problem {
  const message = 'cannot upload the certificates: the keys of their CAs are not on the host (external CAs)';
  return { code: 'PKI_UPLOAD_EXTERNAL', message, hint: 'Omit --upload-certs and copy the certificates to the other control planes' };
}

/** @param why a clause */
export function pkiNotUploaded(why: string): Problem {
  return {
    code: 'PKI_NOT_UPLOADED',
    message: `the certificates of the control plane cannot be downloaded: ${why}`,
    hint: 'Run kubeletadm init phase upload-certs --upload-certs on a control plane and join with the printed key within two hours',
  };
}

export function pkiWrongCertificateKey(entry: string): Problem {
  return {
    code: 'PKI_WRONG_CERTIFICATE_KEY',
    message: `the certificate key does not decrypt ${entry} of the Secret kube-system/kubeadm-certs`,
    hint: 'Pass the key that the last upload printed. To upload again, run kubeletadm init phase upload-certs --upload-certs on a control plane',
  };
}

/** @param why a clause */
export function pkiKubeconfigUnusable(path: string, why: string): Problem {
  return {
    code: 'PKI_KUBECONFIG_UNUSABLE',
    message: `${path}: ${why}`,
    hint: 'Remove the file and rerun the command, which generates a new file',
  };
}
