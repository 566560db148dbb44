import type { RangedFile } from '../operation/large-file.ts';
import type { BundledImages } from './manifest.ts';
import type { Architecture } from './options.ts';
import type { OpenBundle } from './ports.ts';

/** A bundle as the phases of a host use it. */
export interface BundleContents {
  /** Name of the file, for messages. */
  readonly file: string;
  readonly architecture: Architecture;
  /** The image archives for a host, with their content. */
  imagesFor(role: 'worker' | 'control-plane'): readonly BundledArchive[];
  /** The file with this SHA-256; null: the bundle does not contain it. */
  fileBySha256(sha256: string): RangedFile | null;
}

export interface BundledArchive {
  readonly images: readonly string[];
  readonly content: RangedFile;
}

/** The contents of an opened bundle. */
export function bundleContents(bundle: OpenBundle): BundleContents {
  const { contents, architecture } = bundle.manifest;
  const archives = contents.filter((content): content is BundledImages => content.type === 'image');
  return {
    file: bundle.file,
    architecture,
    imagesFor: (role) =>
      archives
        .filter(({ hosts }) => hosts === 'all' || role === 'control-plane')
        .map((content) => ({ images: content.images, content: bundle.contentOf(content) })),
    fileBySha256: (sha256) => {
      const found = contents.find((content) => content.type === 'file' && content.sha256 === sha256);
      return found === undefined ? null : bundle.contentOf(found);
    },
  };
}
