/** A parsed `kubernetesVersion`: a release (with the leading `v`), or a label that a release server resolves. */
export type KubernetesVersion =
  | { readonly kind: 'release'; readonly version: string; readonly ci: boolean }
  | { readonly kind: 'label'; readonly label: string; readonly ci: boolean };

const RELEASE = /^v?(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[-.0-9A-Za-z]+)?(?:\+[-.0-9A-Za-z]+)?$/;
const LABEL = /^(?:latest|stable)+(?:-[1-9](?:\.[1-9]\d?)?)?$/;

/**
 * `v1.36.2`, `1.36.2`, `stable-1`, `stable-1.36`, `latest`, and these after `release/` or `ci/`; null:
 * another text. Callers with access to a release server resolve labels.
 * @see kubernetes/kubernetes cmd/kubeadm/app/util/version.go (1.36)
 */
export function parseKubernetesVersion(text: string): KubernetesVersion | null {
  if (RELEASE.test(text)) return { kind: 'release', version: withV(text), ci: false };
  const match = /^(?:(release|ci)\/)?([-\w.+]+)$/.exec(text);
  if (!match) return null;
  const ci = match[1] === 'ci';
  const label = match[2] as string;
  if (RELEASE.test(label)) return { kind: 'release', version: withV(label), ci };
  return LABEL.test(label) ? { kind: 'label', label, ci } : null;
}

/**
 * `v1.36.2`, or `ci/v1.36.2-10+abcdef` for a CI build. A label is returned unchanged.
 * @see kubeadm 1.36 NormalizeKubernetesVersion: the images of CI builds are in another repository
 */
export function normalizeVersion(text: string): string {
  const parsed = parseKubernetesVersion(text);
  return parsed?.kind === 'release' ? `${parsed.ci ? 'ci/' : ''}${parsed.version}` : text;
}

/** The release of a version stored in the cluster: without `ci/`. */
export function releaseOfVersion(kept: string): string {
  return kept.replace(/^ci\//, '');
}

function withV(version: string): string {
  return version.startsWith('v') ? version : `v${version}`;
}
