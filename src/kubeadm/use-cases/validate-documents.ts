import type { Arg } from '../../base/arg.ts';
import type { Problem } from '../../base/errors.ts';
import { documentTexts } from '../../codec/document-text.ts';
import { type Catalogue, DEFAULT_MINOR, formatMinor, type Minor, parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { unknownFlag, wrongArgument } from '../../kubelet/flags/check-extra-args.ts';
import { type ValidationOptions, validateKubeletConfiguration } from '../../kubelet/validate/validate.ts';
import { pathOfFileUrl } from '../config/defaults.ts';
import { CONFIG_KINDS } from '../config/document-header.ts';
import { type LoadedConfig, loadConfig } from '../config/load.ts';
import type { ModelSet } from '../config/model.ts';
import { type ConfigFinding, placeFinding } from '../config/origins.ts';
import { componentArgumentFindings, loadComponentFlags } from '../control-plane/component-flags.ts';
import { NEWEST_RELEASE, unsupportedVersion } from '../workflows/control-plane/resolve-cluster-configuration.ts';

/** Options for the validation of a file; `chosen` is the requested kubelet version. */
export interface TextOptions extends Omit<ValidationOptions, 'minor' | 'syntax'> {
  readonly chosen: Minor | null;
  readonly allowDeprecated: boolean;
  /** As kubeadm, `metadata` of a document and a missing discovery file are errors; otherwise warnings. */
  readonly asKubeadm: boolean;
  /** Whether a path of the local host exists. */
  readonly exists: (path: string) => Promise<boolean>;
}

export interface TextVerdict {
  /** In order of position. */
  readonly problems: readonly Problem[];
  /** The KubeletConfiguration in the file; null when the file contains none. */
  readonly kubeletText: string | null;
}

/**
 * Validates a file with kubeadm's documents. The version for a KubeletConfiguration is the chosen one, otherwise the
 * kubernetesVersion of a ClusterConfiguration in the same file, otherwise `DEFAULT_MINOR`.
 */
export async function validateDocuments(text: string, file: string, rules: TextOptions): Promise<TextVerdict> {
  const { chosen, allowDeprecated, asKubeadm, exists, ...options } = rules;
  const config = loadConfig(text, file, { kinds: CONFIG_KINDS, allowDeprecated, ...(asKubeadm ? {} : { ignores: 'metadata' }) });
  const own = [
    ...config.problems,
    ...versionProblems(config),
    ...(await discoveryProblems(config, rules)),
    ...(await argumentProblems(config, rules)),
  ].sort(byPosition);
  if (config.kubelet === undefined) return { problems: own, kubeletText: null };
  const declared = parseMinor(config.cluster?.kubernetesVersion ?? '');
  const minor = chosen ?? declared ?? DEFAULT_MINOR;
  const { problems } = validateKubeletConfiguration(config.kubelet, { ...options, minor });
  return { problems: [...own, ...problems].sort(byPosition), kubeletText: documentTexts(text)[config.kubelet.index] ?? null };
}

/** A version that `init` refuses. */
function versionProblems({ cluster, origins }: LoadedConfig): readonly Problem[] {
  const problem = unsupportedVersion(cluster?.kubernetesVersion ?? '');
  return problem === null ? [] : [placeFinding({ path: 'ClusterConfiguration.kubernetesVersion', problem }, origins)];
}

/**
 * A missing discovery file. Only a warning for kubeletadm: the host that joins may have the file.
 * @see kubeadm 1.36 cmd/kubeadm/app/apis/kubeadm/validation/validation.go ValidateDiscoveryKubeConfigPath
 */
async function discoveryProblems({ join, origins }: LoadedConfig, { asKubeadm, exists }: TextOptions): Promise<readonly Problem[]> {
  const written = join?.discovery?.file?.kubeConfigPath;
  if (written === undefined || written === '') return [];
  const { kubeConfigPath: file = written } = pathOfFileUrl(written);
  if (/^[a-z][a-z0-9+.-]*:/i.test(file) || (await exists(file))) return [];
  const problem: Problem = {
    code: 'INPUT_UNREADABLE',
    message: `${file} does not exist on the local host`,
    hint: 'Check the path, or copy the file to the host that joins',
    ...(asKubeadm ? {} : { severity: 'warning' }),
  };
  return [placeFinding({ path: 'JoinConfiguration.discovery.file.kubeConfigPath', problem }, origins)];
}

/**
 * Arguments with which a component or the kubelet exits at startup. Only warnings for kubeadm, which does not check them,
 * and for a version without control planes.
 */
async function argumentProblems(config: LoadedConfig, { chosen, catalogue, asKubeadm }: TextOptions): Promise<readonly Problem[]> {
  const { cluster = {}, origins } = config;
  const version = chosen === null ? cluster.kubernetesVersion : `v${formatMinor(chosen)}.0`;
  const ofComponents = componentArgumentFindings(
    { ...cluster, ...(version === undefined ? {} : { kubernetesVersion: version }) },
    await loadComponentFlags(),
    NEWEST_RELEASE,
  );
  const ofKubelet = kubeletArgumentFindings(config, { minor: parseMinor(version ?? ''), catalogue });
  const problems = [...ofComponents, ...ofKubelet].map((finding) => {
    const { path: _, ...problem } = finding.problem;
    return placeFinding({ ...finding, problem }, origins);
  });
  return asKubeadm ? problems.map((problem) => ({ ...problem, severity: 'warning' })) : problems;
}

function byPosition(a: Problem, b: Problem): number {
  return (a.position?.line ?? 0) - (b.position?.line ?? 0) || (a.position?.column ?? 0) - (b.position?.column ?? 0);
}

/** A kubelet may be three minors older than its API server (version skew policy). */
const KUBELET_SKEW = 3;

/**
 * Problems of all `kubeletExtraArgs` of a file. The kubelet of the host is not known: a flag is an error if no kubelet that
 * suits the version of the cluster has it, and a warning without a version.
 * @param minor of the cluster; null: not known
 */
function kubeletArgumentFindings(
  { init, join }: ModelSet,
  { minor, catalogue }: { readonly minor: Minor | null; readonly catalogue: Catalogue },
): readonly ConfigFinding[] {
  const lists = {
    InitConfiguration: init?.nodeRegistration?.kubeletExtraArgs,
    JoinConfiguration: join?.nodeRegistration?.kubeletExtraArgs,
  };
  return Object.entries(lists).flatMap(([kind, args = []]) =>
    args.flatMap((arg, i) => findingsOf(arg, `${kind}.nodeRegistration.kubeletExtraArgs[${i}]`, { minor, catalogue })),
  );
}

function findingsOf(
  arg: Arg,
  path: string,
  { minor, catalogue }: { readonly minor: Minor | null; readonly catalogue: Catalogue },
): readonly ConfigFinding[] {
  const newest = minor ?? DEFAULT_MINOR;
  const unknown = unknownFlag(arg, newest, catalogue);
  if (unknown !== null) {
    const suitable = Array.from({ length: KUBELET_SKEW }, (_, i) => newest - 1 - i);
    const isError = minor !== null && suitable.every((each) => unknownFlag(arg, each, catalogue) !== null);
    return [{ path: `${path}.name`, problem: isError ? unknown : { ...unknown, severity: 'warning' } }];
  }
  const wrong = wrongArgument(arg, newest, catalogue);
  if (wrong !== null) return [{ path: `${path}.value`, problem: wrong }];
  const field = catalogue.flag(arg.name, newest);
  if (field?.deprecation !== 'use-config-file' || field.field === null) return [];
  const problem = {
    code: 'FLAG_DEPRECATED',
    message: `the flag --${arg.name} of the kubelet is deprecated`,
    hint: `Set the field ${field.field} of KubeletConfiguration instead`,
    severity: 'warning' as const,
  };
  return [{ path: `${path}.name`, problem }];
}
