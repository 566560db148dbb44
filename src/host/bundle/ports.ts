import type { RangedFile } from '../operation/large-file.ts';
import type { BundleContent, BundledImages, BundleManifest } from './manifest.ts';
import type { Architecture } from './options.ts';

export interface InspectedFile {
  readonly file: string;
  readonly sha256: string;
  readonly size: number;
}

/** An archive of container images: an OCI layout, or the format of `docker save`; possibly compressed with gzip. */
export interface ImageArchive extends InspectedFile {
  readonly images: readonly string[];
  /** Architectures of its images, as far as the archive states them. */
  readonly architectures: readonly string[];
}

export interface BundleSource {
  readonly content: BundleContent;
  readonly file: string;
}

export interface OpenBundle {
  /** Name of the file, for messages. */
  readonly file: string;
  readonly size: number;
  readonly manifest: BundleManifest;
  /** A content, read by ranges. The reader compares its SHA-256. */
  contentOf(content: BundleContent): RangedFile;
  /** Compares the whole archive with the manifest. @throws AppError BUNDLE_INVALID (exit code 2) */
  verify(): Promise<void>;
}

/** Bundles and their inputs on the local host. Contents are streamed, because images have hundreds of megabytes. */
export interface BundleFiles {
  /**
   * The file, or the files of a directory by name, without hidden ones. @throws AppError INPUT_UNREADABLE
   * (exit code 2)
   */
  listInputs(path: string): Promise<readonly string[]>;
  /** @throws AppError INPUT_UNREADABLE (exit code 2) */
  inspectFile(file: string): Promise<InspectedFile>;
  /** Null: not an archive of images. @throws AppError INPUT_UNREADABLE (exit code 2) */
  inspectImageArchive(file: string): Promise<ImageArchive | null>;
  /**
   * Writes a bundle atomically and returns its size. Equal inputs give equal bytes. `sources` are in the
   * order of the manifest.
   * @throws AppError INPUT_UNREADABLE, INPUT_UNWRITABLE or BUNDLE_INPUT (a source changed meanwhile), exit
   *   code 2
   */
  write(file: string, manifest: BundleManifest, sources: readonly BundleSource[]): Promise<number>;
  /** @throws AppError INPUT_UNREADABLE or BUNDLE_INVALID (exit code 2) */
  open(file: string): Promise<OpenBundle>;
}

export interface BundleAccess {
  bundleFiles(): Promise<BundleFiles>;
}

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
