import { AppError, type ExitCode, type Problem } from '../base/errors.ts';
import type { KubeletsRequest, KubeletsToQuery } from '../fleet/use-cases/open-kubelets.ts';
import type { TextOptions, TextVerdict } from '../kubeadm/use-cases/validate-documents.ts';
import { type Catalogue, loadCatalogue, type Minor, NEWEST_MINOR } from '../kubelet/catalogue.ts';
import { validateKubeletFile } from '../kubelet/kubelet-file.ts';
import { readValidatedMinor } from '../kubelet/minor-option.ts';
import { OTHER_MINOR_CODE } from '../kubelet/validate/other-minor.ts';
import { VERSION } from '../version.ts';
import type { Services } from './services.ts';
import { type FileVerdict, isOk, type ReportFormat, showVerdicts } from './validate-report.ts';

/** Number of files read ahead while others are validated. */
const READ_AHEAD = 32;

export interface ConfigValidateRequest extends KubeletsRequest {
  readonly files: readonly string[];
  /** Undefined: the newest known, or the version of a ClusterConfiguration in the same file. */
  readonly kubernetesVersion: string | undefined;
  /** Unknown and duplicate fields are warnings. */
  readonly lenient: boolean;
  readonly allowDeprecated: boolean;
  readonly format: ReportFormat;
}

/** `config validate FILE...`: exit code 2 when a file is invalid. */
export async function runValidate(services: Services, request: ConfigValidateRequest): Promise<ExitCode> {
  const { files, kubernetesVersion: version, lenient, allowDeprecated, format } = request;
  const catalogue = await loadCatalogue();
  const chosen = version === undefined ? null : readValidatedMinor(version);
  const asks = request.kubelet !== undefined || request.hosts.addresses.length > 0;
  const kubelets = asks
    ? await (await import('../fleet/use-cases/open-kubelets.ts')).openKubelets(services, request, { catalogue, chosen })
    : null;
  const fileOptions: FileOptions = { catalogue, chosen, lenient, allowDeprecated, kubelets };
  try {
    const verdicts = await validateFiles(services, files, fileOptions);
    showVerdicts(verdicts, format, services.output, VERSION);
    return verdicts.every(isOk) ? 0 : 2;
  } finally {
    await kubelets?.close();
  }
}

async function validateFiles(services: Services, files: readonly string[], options: FileOptions): Promise<readonly FileVerdict[]> {
  const verdicts: FileVerdict[] = [];
  for (let next = 0; next < files.length; next += READ_AHEAD) {
    const read = files.slice(next, next + READ_AHEAD).map((file) => readFile(services, file));
    for (const { file, text } of await Promise.all(read)) {
      const problems = typeof text === 'string' ? await validateFile(text, file, options) : text.problems;
      verdicts.push({ file, problems });
    }
  }
  return withoutRepeatedMinor(verdicts);
}

/** The rules used for a minor are reported with the first file only: all files are validated by the same rules. */
function withoutRepeatedMinor(verdicts: readonly FileVerdict[]): readonly FileVerdict[] {
  const reported = new Set<string>();
  return verdicts.map(({ file, problems }) => ({
    file,
    problems: problems.filter(({ code, message }) => code !== OTHER_MINOR_CODE || reported.size < reported.add(message).size),
  }));
}

/** An unreadable file is reported as invalid; the other files are validated all the same. */
async function readFile({ input }: Services, file: string): Promise<{ readonly file: string; readonly text: string | AppError }> {
  const text = await input.readText(file).catch((error: unknown) => {
    if (error instanceof AppError) return error;
    throw error;
  });
  return { file, text };
}

interface FileOptions {
  readonly catalogue: Catalogue;
  readonly chosen: Minor | null;
  readonly lenient: boolean;
  readonly allowDeprecated: boolean;
  /** Kubelets that validate the files as well; their versions select the rules. */
  readonly kubelets: KubeletsToQuery | null;
}

async function validateFile(text: string, file: string, options: FileOptions): Promise<readonly Problem[]> {
  const { kubelets, ...own } = options;
  return kubelets === null
    ? (await validateText(text, file, own)).problems
    : kubelets.validate((asked) => validateText(text, file, { ...own, ...asked }), file);
}

/**
 * The rules for a KubeletConfiguration: the requested version, else that of the ClusterConfiguration in the
 * same file, else the newest.
 */
async function validateText(text: string, file: string, options: TextOptions): Promise<TextVerdict> {
  const { chosen, allowDeprecated, ...validationOptions } = options;
  const own = validateKubeletFile(text, file, { ...validationOptions, minor: chosen ?? NEWEST_MINOR });
  if (own !== null) return { problems: own, kubeletText: text };
  const { validateOverlayFile } = await import('../dynamic/validate-payload.ts');
  const overlay = validateOverlayFile(text, file, { ...validationOptions, minor: chosen ?? NEWEST_MINOR });
  if (overlay !== null) return { problems: overlay, kubeletText: null };
  return (await import('../kubeadm/use-cases/validate-documents.ts')).validateDocuments(text, file, options);
}
