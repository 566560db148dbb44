import { revealText, type Secret, type SensitiveText } from '../../base/text/secret.ts';
import { definePhase } from '../../host/phase.ts';
import type { ClusterChange } from '../../host/plan/change.ts';
import { diffRbac } from '../../host/plan/rbac-diff.ts';
import { partsOfToken } from '../../kube/bootstrap-token.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { decryptWithCertificateKey, encryptWithCertificateKey } from '../pki/certificate-key.ts';
import { CERTS_TOKEN_DESCRIPTION, CERTS_TTL, KUBEADM_CERTS, kubeadmCertsRbac } from '../pki/shared-files.ts';
import { readTokenSecret, remainingMs, tokenSecret, tokenSecretRef } from '../token/token-secret.ts';
import { findObjects } from './find-objects.ts';

export interface UploadCertsInput {
  readonly files: readonly {
    /** Its key in the Secret. */
    readonly entry: string;
    /** Null: the file does not exist; its value stays empty. */
    readonly text: SensitiveText | null;
    /** Nonce for its encryption, used once. */
    readonly nonce: Uint8Array;
  }[];
  readonly key: Secret;
  /** The key is new, so existing uploads cannot be decrypted with it. */
  readonly keyIsNew: boolean;
  /** A bootstrap token without usages that owns the Secret: the Secret is deleted when it expires. */
  readonly token: Secret;
  readonly now: Date;
  /** Receives the key after the upload; it must be printed on standard output only. */
  readonly show: (key: Secret) => void;
}

interface Found {
  readonly certs: KubeObject | null;
  /** The token Secret that owns it. */
  readonly owner: KubeObject | null;
  readonly rbac: readonly (KubeObject | null)[];
}

const RBAC = kubeadmCertsRbac();
const NOTHING: Found = { certs: null, owner: null, rbac: RBAC.map(() => null) };

/** Certificates that expire sooner are uploaded again, so that enough time remains to join. */
const USABLE_MS = 600_000;

/**
 * Uploads the certificates shared by control planes, encrypted, for two hours. With a null input: not
 * requested.
 * kubeadm 1.36: init phase upload-certs
 */
export const uploadCerts = definePhase<UploadCertsInput | null, Found | null>({
  name: 'upload-certs',
  short: 'Upload the certificates shared by control planes to the Secret kubeadm-certs (with --upload-certs)',
  observe: async ({ cluster }, input) => {
    if (input === null) return null;
    if (cluster === null) return NOTHING;
    const certs = await cluster.get(KUBEADM_CERTS);
    return { certs, owner: await ownerOf(cluster, certs), rbac: await findObjects(cluster, RBAC) };
  },
  plan: (found, input) => {
    if (input === null || found === null) return { changes: [], noop: 'not requested (--upload-certs)' };
    const reason = reasonToUpload(found, input);
    const changes = [
      ...(reason === null ? [] : uploads(found, input, reason)),
      ...RBAC.flatMap((object, i) => diffRbac(found.rbac[i] ?? null, object)),
    ];
    return changes.length > 0
      ? { changes }
      : { changes, noop: 'the uploaded certificates are current and the certificate key decrypts them' };
  },
  verify: async ({ cluster }, input) => {
    if (input !== null && cluster !== null) input.show(input.key);
  },
});

async function ownerOf(cluster: Cluster, certs: KubeObject | null): Promise<KubeObject | null> {
  const [owner] = (certs?.metadata.ownerReferences ?? []) as readonly { readonly kind?: string; readonly name?: string }[];
  return owner?.kind !== 'Secret' || owner.name === undefined ? null : cluster.get({ ...KUBEADM_CERTS, name: owner.name });
}

/** Why the certificates are uploaded; null when the existing ones are usable. */
function reasonToUpload({ certs, owner }: Found, { files, key, keyIsNew, now }: UploadCertsInput): string | null {
  if (certs === null) return 'does not exist';
  if (keyIsNew) return 'a new certificate key was generated';
  const data = (certs.data ?? {}) as Readonly<Record<string, string>>;
  const isCurrent = files.every(({ entry, text }) => {
    const bytes = Buffer.from(data[entry] ?? '', 'base64');
    if (text === null || bytes.length === 0) return text === null && bytes.length === 0;
    const opened = decryptWithCertificateKey(bytes, key);
    return opened !== null && revealText(opened) === revealText(text);
  });
  if (!isCurrent) return 'the content differs, or is encrypted with another certificate key';
  const token = owner === null ? null : readTokenSecret(owner);
  const left = token === null || typeof token === 'string' ? null : remainingMs(token, now);
  return left === null || left >= USABLE_MS ? null : 'the uploaded certificates expire soon';
}

function uploads({ certs }: Found, { files, key, token, now }: UploadCertsInput, reason: string): readonly ClusterChange[] {
  const life = tokenSecret({ token, description: CERTS_TOKEN_DESCRIPTION, ttl: CERTS_TTL, usages: [], groups: [] }, now);
  const owner: ObjectRef = tokenSecretRef(partsOfToken(token)?.id ?? '');
  const encrypted = files.map(({ entry, text, nonce }) => {
    const bytes = text === null ? Buffer.alloc(0) : Buffer.from(encryptWithCertificateKey(text, key, nonce));
    return [entry, bytes.toString('base64')] as const;
  });
  const { name, namespace, ...type } = KUBEADM_CERTS;
  const data = Object.fromEntries(encrypted);
  const write: ClusterChange =
    certs === null
      ? { kind: 'create-object', object: { ...type, metadata: { name, namespace }, data }, owner, reason }
      : { kind: 'update-object', object: { ...certs, data }, before: certs, owner, reason };
  return [{ kind: 'create-object', object: life, reason: 'the uploaded certificates expire with this token, in two hours' }, write];
}
