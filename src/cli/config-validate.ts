import { type ExitCode, isAppError } from '../base/errors.ts';
import type { KubeletsRequest } from '../fleet/use-cases/open-kubelets.ts';
import type { Minor } from '../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../kubelet/catalogue/load-catalogue.ts';
import { OTHER_MINOR_CODE, readValidatedMinor } from '../kubelet/minor-option.ts';
import { VERSION } from '../version.ts';
import { documentKind } from './file-kind.ts';
import type { FileVerdict } from './output/file-verdict.ts';
import type { Services } from './output/services.ts';
import { validateFiles } from './validate-files.ts';
import { isFileValid, type ReportFormat, showVerdicts } from './validate-report.ts';

export interface ConfigValidateRequest extends KubeletsRequest {
  readonly files: readonly string[];
  /** Undefined: the version of a ClusterConfiguration in the same file, else `DEFAULT_MINOR`. */
  readonly kubernetesVersion: string | undefined;
  /** Unknown and duplicate fields are warnings. */
  readonly lenient: boolean;
  readonly allowDeprecated: boolean;
  readonly format: ReportFormat;
}

/** `validate FILE...` and `config validate FILE...`: exit code 2 when a file is invalid. */
export async function runValidate(services: Services, request: ConfigValidateRequest): Promise<ExitCode> {
  const { files, kubernetesVersion: version, lenient, allowDeprecated, format } = request;
  const catalogue = await loadCatalogue();
  const chosen = version === undefined ? null : readValidatedMinor(version);
  const asks = request.kubelet !== undefined || request.hosts.addresses.length > 0;
  const kubelets = asks
    ? await (await import('../fleet/use-cases/open-kubelets.ts')).openKubelets(services, request, { catalogue, chosen })
    : null;
  try {
    const rules = { chosen, lenient, allowDeprecated, asKubeadm: services.programName === 'kubeadm' };
    const parallel = kubelets === null ? await services.validateInThreads?.(files, rules) : null;
    const plain = withoutRepeatedMinor(parallel ?? (await validateFiles(services.input, files, { ...rules, catalogue, kubelets })));
    const verdicts = await Promise.all(plain.map((verdict) => withOwnRules(services, verdict, chosen)));
    showVerdicts(verdicts, format, services.output, VERSION);
    return verdicts.every(isFileValid) ? 0 : 2;
  } finally {
    await kubelets?.close();
  }
}

/** A fleet file or a saved plan, which have rules of their own. Standard input is read only once. */
async function withOwnRules(services: Services, verdict: FileVerdict, chosen: Minor | null): Promise<FileVerdict> {
  const { file, problems } = verdict;
  if (file === '-' || problems.every(({ code }) => code !== 'CONFIG_UNKNOWN_KIND')) return verdict;
  const kind = documentKind(await services.input.readText(file));
  if (kind === 'Fleet') return (await import('./fleet-validate.ts')).validateFleetFile(services, file, chosen);
  if (kind !== 'FleetPlan') return verdict;
  const { readSavedPlan } = await import('../fleet/use-cases/read-saved-plan.ts');
  const found = await readSavedPlan(services, { file, signers: undefined }).then(
    () => [],
    (error: unknown) => {
      if (!isAppError(error)) throw error;
      return error.problems;
    },
  );
  return { file, problems: found };
}

/** The rules used for a minor are reported with the first file only: all files are validated by the same rules. */
function withoutRepeatedMinor(verdicts: readonly FileVerdict[]): readonly FileVerdict[] {
  const reported = new Set<string>();
  return verdicts.map(({ file, problems }) => ({
    file,
    problems: problems.filter(({ code, message }) => code !== OTHER_MINOR_CODE || reported.size < reported.add(message).size),
  }));
}
