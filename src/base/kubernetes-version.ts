/** What `kubernetesVersion` asks for: a release (`v` in front), or a label that a release server turns into one. */
export type KubernetesVersion =
  | { readonly kind: 'release'; readonly version: string; readonly ci: boolean }
  | { readonly kind: 'label'; readonly label: string; readonly ci: boolean };

const RELEASE = /^v?(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[-.0-9A-Za-z]+)?(?:\+[-.0-9A-Za-z]+)?$/;
const LABEL = /^(?:latest|stable)+(?:-[1-9](?:\.[1-9]\d?)?)?$/;

/**
 * Reads `kubernetesVersion`: `v1.36.2`, `1.36.2`, `stable-1`, `stable-1.36`, `latest`, and these behind `release/` or `ci/`.
 * Labels are resolved by whoever can ask a release server.
 * @returns null when it is neither
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
 * What a cluster keeps of its version: `v1.36.2`, and `ci/v1.36.2-10+abcdef` of a build that is no release. A label stays one.
 * @see kubeadm 1.36 NormalizeKubernetesVersion: the images of such a build are in another repository
 */
export function keptVersion(text: string): string {
  const parsed = parseKubernetesVersion(text);
  return parsed?.kind === 'release' ? `${parsed.ci ? 'ci/' : ''}${parsed.version}` : text;
}

/** The release of a version that a cluster keeps: without `ci/`. */
export function releaseOfVersion(kept: string): string {
  return kept.replace(/^ci\//, '');
}

function withV(version: string): string {
  return version.startsWith('v') ? version : `v${version}`;
}
