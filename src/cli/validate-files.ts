import { AppError, type Problem } from '../base/errors.ts';
import type { InputFiles } from '../base/local-files.ts';
import type { KubeletsToQuery } from '../fleet/use-cases/open-kubelets.ts';
import type { TextOptions, TextVerdict } from '../kubeadm/use-cases/validate-documents.ts';
import { type Catalogue, DEFAULT_MINOR } from '../kubelet/catalogue/catalogue.ts';
import type { WrappedConfig } from '../kubelet/documents/wrapped-config.ts';
import { validateKubeletFile } from '../kubelet/validate/kubelet-file.ts';
import { nameFileKinds } from './file-kind.ts';
import type { FileRules, FileVerdict } from './output/file-verdict.ts';

/** Number of files read ahead while others are validated. */
const READ_AHEAD = 32;

export interface FileOptions extends FileRules {
  readonly catalogue: Catalogue;
  /** Kubelets that validate the files as well; their versions select the rules. */
  readonly kubelets: KubeletsToQuery | null;
}

/** Reads and validates files; the verdicts are in the order of the files. */
export async function validateFiles(input: InputFiles, files: readonly string[], options: FileOptions): Promise<readonly FileVerdict[]> {
  const verdicts: FileVerdict[] = [];
  const exists = (path: string): Promise<boolean> => input.exists(path);
  for (let next = 0; next < files.length; next += READ_AHEAD) {
    const read = files.slice(next, next + READ_AHEAD).map((file) => readFile(input, file));
    for (const { file, text } of await Promise.all(read)) {
      const problems =
        typeof text === 'string' ? nameFileKinds(await validateFile(text, file, { ...options, exists }), () => text) : text.problems;
      verdicts.push({ file, problems });
    }
  }
  return verdicts;
}

/** An unreadable file is reported as invalid; the other files are validated all the same. */
async function readFile(input: InputFiles, file: string): Promise<{ readonly file: string; readonly text: string | AppError }> {
  const text = await input.readText(file).catch((error: unknown) => {
    if (error instanceof AppError) return error;
    throw error;
  });
  return { file, text };
}

async function validateFile(text: string, file: string, options: FileOptions & Pick<TextOptions, 'exists'>): Promise<readonly Problem[]> {
  const { kubelets, ...own } = options;
  return kubelets === null
    ? (await validateText(text, file, own)).problems
    : kubelets.validate((asked) => validateText(text, file, { ...own, ...asked }), file);
}

/**
 * The rules for a KubeletConfiguration: the requested version, else that of the ClusterConfiguration in the
 * same file, else `DEFAULT_MINOR`.
 */
async function validateText(text: string, file: string, options: TextOptions): Promise<TextVerdict> {
  const wrapped = WRAPPER.test(text) ? (await import('../kubelet/documents/wrapped-config.ts')).unwrapConfigs(text, file) : null;
  if (wrapped === null) return validatePlainText(text, file, options);
  if ('code' in wrapped) return { problems: [wrapped], kubeletText: null };
  const verdicts = await Promise.all(wrapped.map((config) => validateWrapped(config, file, options)));
  return {
    problems: verdicts.flatMap(({ problems }) => problems),
    kubeletText: verdicts.find((one) => one.kubeletText !== null)?.kubeletText ?? null,
  };
}

/** An object that may contain a configuration. */
const WRAPPER = /\b(?:ConfigMap|KubeletConfig)\b/;

async function validateWrapped(config: WrappedConfig, file: string, options: TextOptions): Promise<TextVerdict> {
  if ('text' in config) {
    const { problems, kubeletText } = await validatePlainText(config.text, file, options);
    return { problems: problems.map(config.place), kubeletText };
  }
  const { chosen, allowDeprecated: _, ...validationOptions } = options;
  const { validateOverlay } = await import('../dynamic/agent/validate-payload.ts');
  return { problems: validateOverlay(config.fields, { ...validationOptions, minor: chosen ?? DEFAULT_MINOR }), kubeletText: null };
}

async function validatePlainText(text: string, file: string, options: TextOptions): Promise<TextVerdict> {
  const { chosen, allowDeprecated, ...validationOptions } = options;
  const own = validateKubeletFile(text, file, { ...validationOptions, minor: chosen ?? DEFAULT_MINOR });
  if (own !== null) return { problems: own, kubeletText: text };
  const { validateOverlayFile } = await import('../dynamic/agent/validate-payload.ts');
  const overlay = validateOverlayFile(text, file, { ...validationOptions, minor: chosen ?? DEFAULT_MINOR });
  if (overlay !== null) return { problems: overlay, kubeletText: null };
  return (await import('../kubeadm/use-cases/validate-documents.ts')).validateDocuments(text, file, options);
}
