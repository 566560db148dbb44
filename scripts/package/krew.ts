import { createHash } from 'node:crypto';
import { stringify } from 'yaml';
import { gzip, tarOf } from './archive.ts';
import { type Architecture, PACKAGE_TEXTS } from './system-package.ts';

const ARCHITECTURES: Readonly<Record<Architecture, string>> = { x64: 'amd64', arm64: 'arm64' };

/** An archive with the executable and the license, from which krew installs `kubectl kubeletadm`. */
export async function krewArchive(from: {
  readonly version: string;
  readonly arch: Architecture;
  readonly executable: Buffer;
  readonly license: Buffer;
  readonly mtime: number;
}): Promise<{ readonly name: string; readonly content: Buffer }> {
  const { version, arch, executable, license, mtime } = from;
  const files = [
    { path: '/kubeletadm', mode: 0o755, content: executable },
    { path: '/LICENSE', mode: 0o644, content: license },
  ];
  return { name: `kubeletadm-${version}-linux-${ARCHITECTURES[arch]}.tar.gz`, content: gzip(await tarOf(files, mtime)) };
}

/**
 * The manifest of the plugin for krew.
 * @param releaseUrl the address below which the archives are published
 * @see https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
 */
export function krewManifest(
  archives: readonly { readonly arch: Architecture; readonly name: string; readonly content: Buffer }[],
  { version, releaseUrl }: { readonly version: string; readonly releaseUrl: string },
): string {
  const platforms = archives.map(({ arch, name, content }) => ({
    selector: { matchLabels: { os: 'linux', arch: ARCHITECTURES[arch] } },
    uri: `${releaseUrl.replace(/\/$/, '')}/${name}`,
    sha256: createHash('sha256').update(content).digest('hex'),
    files: ['kubeletadm', 'LICENSE'].map((file) => ({ from: file, to: '.' })),
    bin: 'kubeletadm',
  }));
  const manifest = {
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'kubeletadm' },
    spec: {
      version: `v${version}`,
      // Of https://github.com/OWNER/NAME/releases/download/v1.2.3, the repository.
      homepage: releaseUrl.replace(/\/releases\/.*$/, ''),
      shortDescription: `${PACKAGE_TEXTS.summary[0]?.toUpperCase()}${PACKAGE_TEXTS.summary.slice(1)}`,
      description: PACKAGE_TEXTS.description,
      platforms,
    },
  };
  return stringify(manifest, { lineWidth: 0 });
}
