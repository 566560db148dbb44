import { AppError, type ExitCode } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type CreateBundleRequest, createBundle } from '../fleet/use-cases/create-bundle.ts';
import type { BundleContent, BundleManifest } from '../host/bundle/manifest.ts';
import { ARCHITECTURES } from '../host/bundle/options.ts';
import type { Services } from './output/services.ts';
import { type ReadFormat, renderDocument } from './output/show-document.ts';

export interface BundleCreateRequest extends Omit<CreateBundleRequest, 'architecture'> {
  /** Undefined: the architecture of the local host. */
  readonly architecture: CreateBundleRequest['architecture'] | undefined;
}

/** `bundle create`. */
export async function runBundleCreate(services: Services, request: BundleCreateRequest): Promise<ExitCode> {
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

export interface BundleShowRequest {
  readonly file: string;
  /** Compares all checksums. */
  readonly verifies: boolean;
  readonly format: ReadFormat;
}

/** `bundle show`. */
export async function runBundleShow(services: Services, { file, verifies, format }: BundleShowRequest): Promise<ExitCode> {
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
