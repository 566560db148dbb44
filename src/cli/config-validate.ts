import { loadConfig } from '../core/config/load.ts';
import type { ConfigKind } from '../core/config/model.ts';
import { type ExitCode, formatProblem, type Problem, usageError } from '../core/errors.ts';
import {
  type Catalogue,
  formatMinor,
  isSupportedMinor,
  loadCatalogue,
  type Minor,
  NEWEST_MINOR,
  OLDEST_MINOR,
  parseMinor,
} from '../core/kubelet/catalogue.ts';
import { decodeKubeletConfiguration } from '../core/kubelet/decode.ts';
import type { Services } from '../ports/services.ts';
import type { CommandOptions } from './program.ts';
import { flagList, flagText } from './read-options.ts';

const ALL_KINDS: readonly ConfigKind[] = [
  'InitConfiguration',
  'ClusterConfiguration',
  'JoinConfiguration',
  'ResetConfiguration',
  'UpgradeConfiguration',
  'KubeletConfiguration',
  'KubeProxyConfiguration',
];

/** `config validate FILE...`: exit code 2 when a file is not right. */
export async function runValidate(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const files = [...args, ...flagList(options, 'config')];
  if (files.length === 0) throw usageError('no file to check', "Name one; '-' is standard input");
  const catalogue = await loadCatalogue();
  const chosen = minorOption(flagText(options, 'kubernetesVersion'));
  const verdicts: { file: string; problems: readonly Problem[] }[] = [];
  for (const file of files) {
    const text = await services.input.readText(file);
    verdicts.push({
      file,
      problems: validateText(text, file, {
        catalogue,
        chosen,
        lenient: options.lenient === true,
        allowDeprecated: options.allowDeprecatedApi === true,
      }),
    });
  }
  const isOk = (problems: readonly Problem[]): boolean => problems.every(({ severity }) => severity === 'warning');
  if (options.output === 'json') {
    const report = verdicts.map(({ file, problems }) => ({ file, ok: isOk(problems), problems: problems.map(reportProblem) }));
    services.output.stdout(`${JSON.stringify(report, null, 2)}\n`);
  } else {
    for (const { problems } of verdicts)
      for (const problem of problems)
        services.output.stderr(`${problem.severity === 'warning' ? 'warning: ' : ''}${formatProblem(problem)}\n`);
    for (const { file, problems } of verdicts) if (isOk(problems)) services.output.stdout(files.length === 1 ? 'ok\n' : `${file}: ok\n`);
  }
  return verdicts.every(({ problems }) => isOk(problems)) ? 0 : 2;
}

interface ValidateOptions {
  readonly catalogue: Catalogue;
  readonly chosen: Minor | null;
  readonly lenient: boolean;
  readonly allowDeprecated: boolean;
}

/** A KubeletConfiguration is judged by the version asked for, else by that of the ClusterConfiguration beside it, else by the newest. */
function validateText(text: string, file: string, { catalogue, chosen, lenient, allowDeprecated }: ValidateOptions): readonly Problem[] {
  const config = loadConfig(text, file, { kinds: ALL_KINDS, allowDeprecated });
  if (config.kubelet === undefined) return config.problems;
  const declared = parseMinor(config.cluster?.kubernetesVersion ?? '');
  const minor = chosen ?? (declared !== null && isSupportedMinor(declared) ? declared : NEWEST_MINOR);
  return [...config.problems, ...decodeKubeletConfiguration(config.kubelet, { minor, catalogue, lenient }).problems].sort(byPosition);
}

function byPosition(a: Problem, b: Problem): number {
  return (a.position?.line ?? 0) - (b.position?.line ?? 0) || (a.position?.column ?? 0) - (b.position?.column ?? 0);
}

function minorOption(version: string | undefined): Minor | null {
  if (version === undefined) return null;
  const minor = parseMinor(version);
  if (minor === null) throw usageError(`--kubernetes-version ${version} is no version`, 'Write it like 1.36');
  if (isSupportedMinor(minor)) return minor;
  throw usageError(`--kubernetes-version ${version} is not known`, `From ${formatMinor(OLDEST_MINOR)} to ${formatMinor(NEWEST_MINOR)} are`);
}

/** One problem of the JSON report: a stable interface. */
function reportProblem({ severity = 'error', path = '', position, code, message, mend = '' }: Problem) {
  return { severity, path, line: position?.line ?? 0, column: position?.column ?? 0, rule: code, message, mend };
}
