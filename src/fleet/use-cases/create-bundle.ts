import { AppError, type Problem } from '../../base/errors.ts';
import {
  type BundleContent,
  type BundledImages,
  type BundledPackage,
  bundleManifest,
  MAX_CONTENT_BYTES,
  MAX_NAME_BYTES,
} from '../../host/bundle/manifest.ts';
import type { Architecture, IMAGE_TOOLS } from '../../host/bundle/options.ts';
import type { BundleAccess, BundleFiles, BundleSource, ImageArchive, InspectedFile } from '../../host/bundle/ports.ts';
import { fullImageName } from '../../host/cri/runtime-commands.ts';
import type { Warning } from '../../host/plan/change.ts';
import { listImages } from '../../kubeadm/use-cases/list-images.ts';
import type { DocumentPorts, DocumentsRequest } from '../../kubeadm/use-cases/resolve-init-documents.ts';
import type { LocalCommands } from '../ports.ts';

export interface CreateBundleRequest extends DocumentsRequest {
  readonly out: string;
  readonly architecture: Architecture;
  readonly images: readonly string[];
  /** Archives of images, or directories with them. */
  readonly imagesFrom: readonly string[];
  /** For images in no archive. Undefined: each image must be in an archive. */
  readonly imagesWith: (typeof IMAGE_TOOLS)[number] | undefined;
  /** Packages and other files, or directories with them. */
  readonly packages: readonly string[];
  readonly files: readonly string[];
}

/**
 * Writes a bundle with the images of a control plane, packages and files.
 * @param ports.onFetch called with the name of each image that a tool fetches
 * @throws AppError BUNDLE_IMAGES_MISSING, BUNDLE_WRONG_ARCHITECTURE, BUNDLE_INPUT, LOCAL_COMMAND_FAILED and the errors
 * of the configuration and of `BundleFiles`; no file is written then
 */
export async function createBundle(
  ports: DocumentPorts &
    BundleAccess &
    Parameters<typeof fetchImage>[0] & {
      makeTemporaryDirectory(prefix: string): Promise<string>;
      removeTemporaryDirectory(path: string): Promise<void>;
    },
  request: CreateBundleRequest,
) {
  const files = await ports.bundleFiles();
  const listed = await listImages(ports, request);
  const everywhere = new Set([...listed.workerImages, ...request.images].map(fullImageName));
  const wanted = [...new Set([...listed.images, ...request.images].map(fullImageName))];
  const { archives, warnings } = await readArchives(files, request, wanted);
  const inArchives = new Set(archives.flatMap(({ images }) => images));
  const missing = wanted.filter((image) => !inArchives.has(image));
  if (missing.length > 0 && request.imagesWith === undefined) throw imagesMissing(missing);
  const packages = await eachInput(files, request.packages, async (file) =>
    packageSource(await files.inspectFile(file), request.architecture),
  );
  const others = await eachInput(files, request.files, async (file) => fileSource(await files.inspectFile(file)));
  const directory = missing.length === 0 ? null : await ports.makeTemporaryDirectory('kubeletadm-bundle-');
  try {
    const fetched: ImageArchive[] = [];
    for (const [index, image] of missing.entries())
      fetched.push(await fetchImage(ports, { image, file: `${directory}/${index}.tar`, request, files }));
    const images = [...archives, ...fetched].map((archive) => imageSource(archive, { wanted, everywhere }));
    const all = [...images, ...packages, ...others];
    const refused = [...tooLarge(all), ...duplicates(all)];
    if (refused.length > 0) throw new AppError(refused, { exitCode: 2 });
    const { kubernetesVersion } = listed;
    const manifest = bundleManifest({ kubernetesVersion, architecture: request.architecture, contents: all.map(({ content }) => content) });
    const sources = manifest.contents.map((content) => all.find((source) => source.content === content) as BundleSource);
    const size = await files.write(request.out, manifest, sources);
    return { manifest, size, warnings: [...listed.warnings, ...warnings] };
  } finally {
    if (directory !== null) await ports.removeTemporaryDirectory(directory);
  }
}

/** The archives with wanted images, the fewest that contain all of them in the order of the inputs. */
async function readArchives(
  files: BundleFiles,
  { imagesFrom, architecture }: CreateBundleRequest,
  wanted: readonly string[],
): Promise<{ readonly archives: readonly ImageArchive[]; readonly warnings: readonly Warning[] }> {
  const archives: ImageArchive[] = [];
  const warnings: Warning[] = [];
  const found = new Set<string>();
  const problems: Problem[] = [];
  for (const path of imagesFrom) {
    for (const file of await files.listInputs(path)) {
      const archive = await files.inspectImageArchive(file);
      const images = archive?.images.filter((image) => wanted.includes(image) && !found.has(image)) ?? [];
      if (archive === null || images.length === 0) {
        const message =
          archive === null ? `${file} is not an archive of images` : `no image of ${file} is used: ${archive.images.join(', ')}`;
        warnings.push({ code: 'BUNDLE_UNUSED', message: `${message}. To add an image, pass its name with --image` });
        continue;
      }
      problems.push(...wrongArchitecture(archive, architecture));
      for (const image of images) found.add(image);
      archives.push(archive);
    }
  }
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  return { archives, warnings };
}

function wrongArchitecture({ file, architectures }: ImageArchive, wanted: Architecture): readonly Problem[] {
  if (architectures.length === 0 || architectures.includes(wanted)) return [];
  const message = `${file} has images for ${architectures.join(' and ')}, but the bundle is for ${wanted}`;
  return [{ code: 'BUNDLE_WRONG_ARCHITECTURE', message, hint: `Export the images for linux/${wanted}, or pass --arch` }];
}

function imagesMissing(images: readonly string[]): AppError {
  const message = `no archive of --images-from contains ${images.join(', ')}`;
  const hint = 'Add the archives with --images-from, or fetch the images with --images-with ctr or --images-with skopeo';
  return new AppError({ code: 'BUNDLE_IMAGES_MISSING', message, hint }, { exitCode: 2 });
}

const FETCH_MS = 1_800_000;

async function fetchImage(
  ports: LocalCommands & { readonly onFetch?: ((image: string) => void) | undefined },
  {
    image,
    file,
    request: { imagesWith, architecture },
    files,
  }: { readonly image: string; readonly file: string; readonly request: CreateBundleRequest; readonly files: BundleFiles },
): Promise<ImageArchive> {
  ports.onFetch?.(image);
  const argv =
    imagesWith === 'ctr'
      ? ['ctr', '-n', 'k8s.io', 'images', 'export', '--platform', `linux/${architecture}`, file, image]
      : [
          'skopeo',
          'copy',
          '--quiet',
          '--override-os',
          'linux',
          '--override-arch',
          architecture,
          `docker://${image}`,
          `docker-archive:${file}:${image}`,
        ];
  await ports.runLocal(argv, { timeoutMs: FETCH_MS });
  const archive = await files.inspectImageArchive(file);
  if (archive?.images.includes(image) !== true) throw imagesMissing([image]);
  const problems = wrongArchitecture(archive, architecture);
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  return archive;
}

function imageSource(
  { file, sha256, size, images: all }: ImageArchive,
  { wanted, everywhere }: { readonly wanted: readonly string[]; readonly everywhere: ReadonlySet<string> },
): BundleSource {
  const images = all.filter((image) => wanted.includes(image));
  const name = (images[0] ?? '')
    .replace(/^.*\//, '')
    .replace(/[^\w.-]+/g, '-')
    .slice(0, 60);
  const path = `images/${name}-${sha256.slice(0, 12)}.tar`;
  const hosts = images.some((image) => everywhere.has(image)) ? 'all' : 'control-planes';
  const content: BundledImages = { type: 'image', path, sha256, size, images, hosts };
  return { content, file };
}

async function eachInput<T>(files: BundleFiles, paths: readonly string[], read: (file: string) => Promise<T>): Promise<readonly T[]> {
  const results: T[] = [];
  for (const path of paths) for (const file of await files.listInputs(path)) results.push(await read(file));
  return results;
}

/** Names of package files, as apt and dnf download them. */
const DEB = /^([a-z0-9][a-z0-9+.-]+)_([^_/]+)_([a-z0-9]+)\.deb$/;
const RPM = /^([A-Za-z0-9][\w.+-]*)-([^-/]+-[^-/]+)\.(\w+)\.rpm$/;
const RPM_ARCHITECTURES = { amd64: 'x86_64', arm64: 'aarch64' } as const;

function packageSource({ file, sha256, size }: InspectedFile, architecture: Architecture): BundleSource {
  const base = baseName(file).replaceAll('%3a', ':');
  const [deb, rpm] = [DEB.exec(base), RPM.exec(base)];
  const [, name, version, own] = deb ?? rpm ?? [];
  if (name === undefined || version === undefined) {
    const hint = 'Use the names of the package manager: NAME_VERSION_ARCH.deb or NAME-VERSION-RELEASE.ARCH.rpm';
    throw new AppError({ code: 'BUNDLE_INPUT', message: `${file} does not have the name of a package`, hint }, { exitCode: 2 });
  }
  const fits = deb === null ? [RPM_ARCHITECTURES[architecture], 'noarch'] : [architecture, 'all'];
  if (!fits.includes(own ?? '')) {
    const message = `${file} is a package for ${own}, but the bundle is for ${architecture}`;
    const hint = `Use a package for ${fits[0]}, or pass --arch`;
    throw new AppError({ code: 'BUNDLE_WRONG_ARCHITECTURE', message, hint }, { exitCode: 2 });
  }
  const path = `packages/${checkedName(file, base.replaceAll(':', '+'))}`;
  const content: BundledPackage = { type: 'package', path, sha256, size, format: deb === null ? 'rpm' : 'deb', name, version };
  return { content, file };
}

function fileSource({ file, sha256, size }: InspectedFile): BundleSource {
  return { content: { type: 'file', path: `files/${checkedName(file, baseName(file))}`, sha256, size }, file };
}

function baseName(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1);
}

function checkedName(file: string, name: string): string {
  if (/^[\w.+~-]+$/.test(name) && name.length <= MAX_NAME_BYTES - 'packages/'.length) return name;
  const hint = 'Use letters, digits and the characters . _ + ~ - in the name, at most 91';
  throw new AppError({ code: 'BUNDLE_INPUT', message: `${file} has a name that a bundle cannot contain`, hint }, { exitCode: 2 });
}

function tooLarge(all: readonly BundleSource[]): readonly Problem[] {
  const large = all.filter(({ content }) => content.size > MAX_CONTENT_BYTES);
  return large.map(({ file }) => ({ code: 'BUNDLE_INPUT', message: `${file} has 8 GiB or more`, hint: 'Use smaller files' }));
}

function duplicates(all: readonly BundleSource[]): readonly Problem[] {
  const seen = new Map<BundleContent['path'], string>();
  return all.flatMap(({ content, file }) => {
    const other = seen.get(content.path);
    seen.set(content.path, file);
    if (other === undefined) return [];
    return [{ code: 'BUNDLE_INPUT', message: `${other} and ${file} have the same name`, hint: 'Pass only one of them' }];
  });
}
