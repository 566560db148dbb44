import type { Problem } from '../../base/errors.ts';
import { formatRfc3339 } from '../../base/text/rfc3339.ts';

/** What can be wrong with the certificates, keys and kubeconfigs of a control plane. */

const REMOVE_BOTH = (crt: string, key: string): string => `Remove ${crt} and ${key} to have them made anew`;

/** A file that holds something else than it should. */
export function pkiUnreadable(path: string, what: 'certificate' | 'private key' | 'public key'): Problem {
  const kinds = what === 'private key' ? ' (RSA or ECDSA, PEM, not encrypted)' : '';
  return { code: 'PKI_UNREADABLE', message: `${path} holds no ${what}${kinds}`, hint: 'Put the right file there' };
}

/** A certificate that may not sign, where an authority must be. */
export function pkiNotAuthority(path: string, subject: string): Problem {
  return {
    code: 'PKI_NOT_AUTHORITY',
    message: `${path}: ${subject} is no certificate authority: its basic constraints say CA:FALSE`,
    hint: 'Put the certificate of the authority there',
  };
}

/**
 * A certificate that ended.
 * @param path what ended, e.g. its path
 * @param hint a sentence
 */
export function pkiExpired(path: string, notAfter: Date, hint: string): Problem {
  return { code: 'PKI_EXPIRED', message: `${path} ended on ${formatRfc3339(notAfter)}`, hint };
}

/** A certificate that begins later than now. */
export function pkiNotYetValid(path: string, notBefore: Date, now: Date): Problem {
  return {
    code: 'PKI_NOT_YET_VALID',
    message: `${path} begins on ${formatRfc3339(notBefore)}, and here it is ${formatRfc3339(now)}`,
    hint: 'Set the clock right',
  };
}

/** A host without any certificate of a control plane. @param crt where that of the API server would be */
export function pkiNoControlPlane(crt: string): Problem {
  return {
    code: 'PKI_NO_CONTROL_PLANE',
    message: `it is no control plane (no ${crt} and no other certificate of one): nothing can be renewed here`,
    hint: 'Name a control plane with --host, or another directory with --cert-dir; certs renew-kubelet renews the certificate of a kubelet',
  };
}

/** A private key that is not that of the certificate, or public key, beside it. */
export function pkiKeyMismatch(crt: string, key: string, hint = REMOVE_BOTH(crt, key)): Problem {
  return { code: 'PKI_KEY_MISMATCH', message: `${key} does not fit ${crt}: it is the key of something else`, hint };
}

/** A certificate, or public key, whose private key is missing. */
export function pkiKeyMissing(crt: string, key: string): Problem {
  return {
    code: 'PKI_KEY_MISSING',
    message: `${crt} is there, but not its key ${key}`,
    hint: `Put the key there, or remove ${crt} to have both made anew`,
  };
}

/** A certificate that another authority signed. */
export function pkiForeign(crt: string, key: string, issuer: string, ca: string): Problem {
  return {
    code: 'PKI_FOREIGN',
    message: `${crt} is not signed by the authority in ${ca}, but by ${issuer}`,
    hint: REMOVE_BOTH(crt, key),
  };
}

/** A certificate whose purposes are others than those that are made here. */
export function pkiUsagesUnknown(crt: string, usages: readonly string[]): Problem {
  const what = usages.length === 0 ? 'says nothing of what it is for' : `is also for ${usages.join(', ')}`;
  const message = `${crt} ${what}: one like it cannot be made here`;
  return { code: 'PKI_USAGES_UNKNOWN', message, hint: 'Renew it where it was made' };
}

/** A certificate that lacks names by which its server is called. */
export function pkiNamesMissing(crt: string, key: string, names: readonly string[]): Problem {
  return {
    code: 'PKI_NAMES_MISSING',
    message: `${crt} is not good for ${names.join(', ')}`,
    hint: REMOVE_BOTH(crt, key),
  };
}

/** The key of an authority is elsewhere: what it would sign must be there. */
export function pkiExternalIncomplete(path: string, caKey: string): Problem {
  return {
    code: 'PKI_EXTERNAL_INCOMPLETE',
    message: `${path} is missing, and without ${caKey} it cannot be made`,
    hint: 'With an external certificate authority put all that it signs there, or put its key there',
  };
}

/** What was signed by an authority is there, and the authority is not. */
export function pkiAuthorityLost(ca: string, orphans: readonly string[]): Problem {
  return {
    code: 'PKI_AUTHORITY_LOST',
    message: `${ca} is missing, and there is what it is the authority of: ${orphans.join(', ')}`,
    hint: 'Put it there, or run reset to begin anew',
  };
}

/** An authority to which nothing belongs that is there. */
export function pkiAuthorityReplaced(ca: string, foreign: readonly string[]): Problem {
  return {
    code: 'PKI_AUTHORITY_REPLACED',
    message: `${ca} is not the authority of what is there: ${foreign.join(', ')}`,
    hint: 'Put back the one that is, or run reset to begin anew',
  };
}

/** A certificate or kubeconfig that is to be made, and whose authority is neither there nor to be made. */
export function pkiAuthorityMissing(path: string, ca: string, phase: string): Problem {
  return {
    code: 'PKI_AUTHORITY_MISSING',
    message: `${path} needs the authority ${ca}, which is missing`,
    hint: `Run the phase ${phase} first`,
  };
}

/** What all control planes share, and one that joins must be given. */
export function pkiSharedMissing(paths: readonly string[]): Problem {
  return {
    code: 'PKI_SHARED_MISSING',
    message: `${paths.join(', ')}: missing, and all control planes must have the same`,
    hint: 'Give --certificate-key (init phase upload-certs --upload-certs on a control plane prints one), or copy them from a control plane',
  };
}

/** What all control planes share, and here is something else. */
export function pkiSharedDiffers(path: string): Problem {
  return {
    code: 'PKI_SHARED_DIFFERS',
    message: `${path} is another than that of the cluster`,
    hint: 'Is it left from another cluster? Run reset first',
  };
}

/** The certificates of an authority whose key is elsewhere cannot be handed on. */
export function pkiUploadExternal(): Problem {
  const message = 'certificates cannot be uploaded without the keys of their authorities, which are external';
  return { code: 'PKI_UPLOAD_EXTERNAL', message, hint: 'Leave out --upload-certs, and copy the certificates to the other control planes' };
}

/**
 * There are no certificates to download, or not all of them.
 * @param why a clause
 */
export function pkiNotUploaded(why: string): Problem {
  return {
    code: 'PKI_NOT_UPLOADED',
    message: `the certificates of the control plane cannot be downloaded: ${why}`,
    hint: 'Run init phase upload-certs --upload-certs on a control plane, and join with the key it prints: they are kept for two hours',
  };
}

/** The uploaded certificates were encrypted with another key. */
export function pkiWrongCertificateKey(entry: string): Problem {
  return {
    code: 'PKI_WRONG_CERTIFICATE_KEY',
    message: `the certificate key does not open ${entry} of the Secret kube-system/kubeadm-certs`,
    hint: 'Give the key that the last upload of certificates printed',
  };
}

/**
 * A kubeconfig that is there and cannot be used.
 * @param why a clause
 */
export function pkiKubeconfigUnusable(path: string, why: string): Problem {
  return { code: 'PKI_KUBECONFIG_UNUSABLE', message: `${path}: ${why}`, hint: 'Remove it to have it made anew' };
}
