import { type Command, Option } from 'commander';
import { AppError, type ExitCode, usageError } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { CreateBundleRequest } from '../fleet/use-cases/create-bundle.ts';
import type { BundleContent, BundleManifest } from '../host/bundle/manifest.ts';
import { ARCHITECTURES, IMAGE_TOOLS } from '../host/bundle/options.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import { flagChoice, flagList, flagText } from './option-values.ts';
import { addImagesOptions, collect, readOutputOption } from './options.ts';
import type { Services } from './output/services.ts';
import type { ReadFormat } from './output/show-document.ts';
import { kubeadmFlags, readFormat } from './request-parts.ts';

/** `bundle create`, `bundle show`. */
export function defineBundle(bundle: Command, on: On): void {
  const create = addImagesOptions(
    bundle.command('create').description('Write one file with images, packages and executables for hosts without Internet access'),
  )
    .requiredOption('-o, --out <file>', 'file to write')
    .addOption(new Option('--arch <arch>', 'architecture of the hosts (default: that of the local host)').choices(ARCHITECTURES))
    .option('--image <name>', 'additional image, e.g. of the pod network (repeatable)', collect)
    .option('--images-from <path>', 'archive of images (OCI or docker save), or a directory of archives (repeatable)', collect)
    .addOption(
      new Option(
        '--images-with <tool>',
        'program that provides the images missing in the archives; ctr: reads them from containerd on the local host (needs root); skopeo: downloads them from registries',
      ).choices(IMAGE_TOOLS),
    )
    .option('--package <path>', 'package (.deb or .rpm), or a directory of them (repeatable)', collect)
    .option(
      '--file <path>',
      'program or archive to install, such as the kubelet, or a directory of such files; needed if the fleet file contains "install: binaries" (repeatable)',
      collect,
    );
  on(create, createRequest, runBundleCreate);
  addSections(create, { notes: CREATE_NOTES, examples: CREATE_EXAMPLES });
  const show = bundle
    .command('show')
    .description('Print the contents of a bundle, with sizes')
    .argument('<file>', 'bundle')
    .option('--verify', 'read the whole bundle and compare each entry with its checksum in the manifest')
    .addOption(readOutputOption());
  on(
    show,
    ([file = ''], options): BundleShowRequest => ({ file, verifies: options.verify === true, format: readFormat(options) }),
    runBundleShow,
  );
  addSections(show, { examples: SHOW_EXAMPLES });
}

function createRequest(_: readonly string[], options: CommandOptions): BundleCreateRequest {
  const tool = flagText(options, 'imagesWith');
  const out = flagText(options, 'out') ?? '';
  if (out === '' || out === '-') throw usageError('a bundle cannot be written to standard output', 'Pass a file: --out bundle.tar');
  return {
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    out,
    architecture: options.arch === undefined ? undefined : flagChoice(options, 'arch', ARCHITECTURES),
    images: flagList(options, 'image'),
    imagesFrom: flagList(options, 'imagesFrom'),
    imagesWith: tool === undefined ? undefined : flagChoice(options, 'imagesWith', IMAGE_TOOLS),
    packages: flagList(options, 'package'),
    files: flagList(options, 'file'),
  };
}

const CREATE_NOTES = `The bundle contains the images of a control plane, as printed by kubeletadm config images list, and the images of --image. Each image must be in an archive (--images-from) or available to the program of --images-with. The same inputs always result in an identical file.`;

const CREATE_EXAMPLES = `  kubeletadm bundle create -o bundle.tar --kubernetes-version v1.36.2 --images-from ./images --file ./bin
  kubeletadm bundle create -o bundle.tar --config init.yaml --images-with skopeo --package ./debs
  sudo kubeletadm bundle create -o bundle.tar --images-with ctr --image docker.io/flannel/flannel:v0.27.4`;

const SHOW_EXAMPLES = `  kubeletadm bundle show bundle.tar
  kubeletadm bundle show bundle.tar --verify -o json`;

interface BundleCreateRequest extends Omit<CreateBundleRequest, 'architecture'> {
  /** Undefined: the architecture of the local host. */
  readonly architecture: CreateBundleRequest['architecture'] | undefined;
}

/** `bundle create`. */
async function runBundleCreate(services: Services, request: BundleCreateRequest): Promise<ExitCode> {
  const { createBundle } = await import('../fleet/use-cases/create-bundle.ts');
  const reporter = services.reporter({ verbosity: 0, format: 'text' });
  const onFetch = (image: string): void => void services.output.stderr(`fetching ${image}\n`);
  const architecture = request.architecture ?? localArchitecture(services);
  const { manifest, size, warnings } = await createBundle({ ...services, onFetch }, { ...request, architecture });
  for (const { code, message } of warnings) reporter.report({ level: 'warning', code, message });
  services.output.stdout(`${request.out}: ${summary(manifest, size)}\n`);
  return 0;
}

function localArchitecture({ runtime }: Pick<Services, 'runtime'>): CreateBundleRequest['architecture'] {
  const own = runtime.platform.replace(/^.*\//, '');
  const known = ARCHITECTURES.find((each) => each === own);
  if (known !== undefined) return known;
  const message = `the local host has the architecture ${own}, for which Kubernetes has no bundle`;
  throw new AppError({ code: 'USAGE', message, hint: 'Pass --arch amd64 or --arch arm64' }, { exitCode: 2 });
}

interface BundleShowRequest {
  readonly file: string;
  /** Compares all checksums. */
  readonly verifies: boolean;
  readonly format: ReadFormat;
}

/** `bundle show`. */
async function runBundleShow(services: Services, { file, verifies, format }: BundleShowRequest): Promise<ExitCode> {
  const { renderDocument } = await import('./output/show-document.ts');
  const bundle = await (await services.bundleFiles()).open(file);
  if (verifies) await bundle.verify();
  const { manifest, size } = bundle;
  if (format !== 'text') {
    services.output.stdout(renderDocument(manifest, format));
    return 0;
  }
  const rows = manifest.contents.map((content) => [
    content.type.toUpperCase(),
    nameOf(content),
    inMegabytes(content.size),
    content.sha256.slice(0, 12),
  ]);
  const verified = verifies ? ['All checksums match.'] : [];
  services.output.stdout(
    joinLines([`${file}: ${summary(manifest, size)}`, '', ...renderTable([['TYPE', 'NAME', 'SIZE', 'SHA-256'], ...rows]), ...verified]),
  );
  return 0;
}

function nameOf(content: BundleContent): string {
  if (content.type === 'image') return `${content.images.join(', ')}${content.hosts === 'all' ? '' : ' (control planes)'}`;
  if (content.type === 'package') return `${content.name} ${content.version} (${content.format})`;
  return content.path.replace(/^files\//, '');
}

function summary({ kubernetesVersion, architecture, contents }: BundleManifest, size: number): string {
  const count = (type: BundleContent['type'], one: string): readonly string[] => {
    const all = contents.filter((content) => content.type === type);
    const number = all.reduce((sum, content) => sum + (content.type === 'image' ? content.images.length : 1), 0);
    return number === 0 ? [] : [`${number} ${one}${number === 1 ? '' : 's'}`];
  };
  const parts = [...count('image', 'image'), ...count('package', 'package'), ...count('file', 'file')];
  return `Kubernetes ${kubernetesVersion}, ${architecture}, ${parts.length === 0 ? 'empty' : parts.join(', ')}, ${inMegabytes(size)}`;
}

function inMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
