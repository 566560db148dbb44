import type { Arg } from '../../base/arg.ts';
import type { Problem } from '../../base/errors.ts';
import { parseSemanticVersion } from '../../base/semantic-version.ts';
import { nearestFlag, type ProgramFlags, wrongFlagValue } from '../../kubelet/flags/check-extra-args.ts';
import type { ClusterConfiguration } from '../config/model.ts';
import type { ConfigFinding } from '../config/origins.ts';
import { releaseFacts } from '../config/releases.ts';
import type { StaticPodName } from './paths.ts';

/** A flag of a component, as in data/component-flags.json. */
interface ComponentFlag {
  readonly flag: string;
  /** `string`, `bool`, `int`, `uint`, `float`, `duration`, `ip` or `other`; `other` and `string` are not checked. */
  readonly type: string;
  readonly deprecatedSince?: number;
  /** First and last minor with the flag. Default: those of the component. */
  readonly minors?: readonly [number, number];
}

/** The flags of each component in the known minors: 35 for Kubernetes 1.35, 6 for etcd 3.6. */
type ComponentFlags = {
  readonly [K in StaticPodName]: { readonly minors: readonly [number, number]; readonly flags: readonly ComponentFlag[] };
};

export async function loadComponentFlags(): Promise<ComponentFlags> {
  const { default: data } = await import('../data/component-flags.json', { with: { type: 'json' } });
  // test/unit/kubeadm/control-plane/component-flags.test.ts checks the members.
  return data as unknown as ComponentFlags;
}

const REPOSITORY = 'registry.k8s.io';

/**
 * Problems of the `extraArgs` of all components: unknown flags and values of another type, with which the component exits at
 * startup, and deprecated flags (warnings). Only warnings if the flags of the images are not known for certain.
 * @param defaultVersion version of a cluster without kubernetesVersion, e.g. `v1.36.2`
 */
export function componentArgumentFindings(
  cluster: ClusterConfiguration,
  flags: ComponentFlags,
  defaultVersion: string,
): readonly ConfigFinding[] {
  const { apiServer, controllerManager, scheduler, etcd } = cluster;
  const version = cluster.kubernetesVersion ?? defaultVersion;
  const isOfficial = (cluster.imageRepository ?? REPOSITORY) === REPOSITORY;
  const kubernetes = versionOf(version, isOfficial);
  const { imageTag = releaseFacts(version).etcd, imageRepository = REPOSITORY } = etcd?.local ?? {};
  const ofEtcd = versionOf(imageTag.replace(/^v?/, 'v').replace(/-\d+$/, ''), isOfficial && imageRepository === REPOSITORY);
  const parts: readonly (readonly [StaticPodName, string, readonly Arg[] | undefined, ReturnType<typeof versionOf>])[] = [
    ['kube-apiserver', 'apiServer', apiServer?.extraArgs, kubernetes],
    ['kube-controller-manager', 'controllerManager', controllerManager?.extraArgs, kubernetes],
    ['kube-scheduler', 'scheduler', scheduler?.extraArgs, kubernetes],
    ['etcd', 'etcd.local', etcd?.local?.extraArgs, ofEtcd],
  ];
  return parts.flatMap(([name, path, args = [], at]) => {
    if (args.length === 0) return [];
    const known = flagsOf(name, flags[name], at);
    return args.flatMap((arg, i) => {
      const found = argumentProblem(arg, known);
      if (found === null) return [];
      const problem = known.isCertain ? asFatal(found.problem) : asGuess(found.problem, name);
      return [{ path: `ClusterConfiguration.${path}.extraArgs[${i}].${found.member}`, problem }];
    });
  });
}

/** `isCertain` is false for images whose flags may differ: another repository, a pre-release, a version without data. */
function versionOf(version: string, isOfficial: boolean) {
  const parsed = parseSemanticVersion(version);
  return { minor: parsed?.minor ?? Number.POSITIVE_INFINITY, isCertain: isOfficial && parsed !== null && !version.includes('-') };
}

interface FlagsInVersion extends ProgramFlags {
  readonly isCertain: boolean;
  readonly minor: number;
  readonly major: number;
  readonly entry: (name: string) => ComponentFlag | undefined;
}

function flagsOf(
  name: StaticPodName,
  { minors, flags }: ComponentFlags[StaticPodName],
  { minor, isCertain }: ReturnType<typeof versionOf>,
): FlagsInVersion {
  const nearest = Math.min(Math.max(minor, minors[0]), minors[1]);
  const major = name === 'etcd' ? 3 : 1;
  const inVersion = flags.filter(({ minors: [first, last] = minors }) => first <= nearest && nearest <= last);
  const byName = new Map(inVersion.map((entry) => [entry.flag, entry]));
  // pflag with the word separators of component-base; etcd uses Go's flag package.
  const spelling = name === 'etcd' ? (text: string) => text : (text: string) => text.replaceAll('_', '-');
  return {
    program: `${name} ${major}.${nearest}`,
    ...{ major, minor: nearest, isCertain: isCertain && nearest === minor },
    typeOf: (flag) => byName.get(spelling(flag))?.type ?? null,
    names: () => byName.keys(),
    entry: (flag) => flags.find((one) => one.flag === spelling(flag)),
  };
}

/** Flags of every program, which print a text and exit. */
const ENDS_PROGRAM: ReadonlySet<string> = new Set(['help', 'version']);

function argumentProblem(arg: Arg, known: FlagsInVersion): { readonly member: 'name' | 'value'; readonly problem: Problem } | null {
  const { name } = arg;
  const entry = known.entry(name);
  if (ENDS_PROGRAM.has(name) || name === '') return null;
  if (known.typeOf(name) === null) return { member: 'name', problem: unknownArgument(name, entry, known) };
  const wrong = wrongFlagValue(arg, known);
  if (wrong !== null) return { member: 'value', problem: wrong };
  const { deprecatedSince } = entry ?? {};
  if (deprecatedSince === undefined || deprecatedSince > known.minor) return null;
  return { member: 'name', problem: deprecatedArgument(name, known) };
}

function unknownArgument(name: string, entry: ComponentFlag | undefined, known: FlagsInVersion): Problem {
  const message = `${known.program} has no flag --${name}${history(entry, known)}`;
  const otherwise = 'Remove the argument';
  const hint = successor(name, known) ?? (entry === undefined ? nearestFlag(name, known, `${otherwise}, or correct its name`) : otherwise);
  return { code: 'FLAG_UNKNOWN', message, hint };
}

function history(entry: ComponentFlag | undefined, { minor, major }: FlagsInVersion): string {
  if (entry?.minors === undefined) return '';
  const [first, last] = entry.minors;
  return minor < first ? `, which was added in ${major}.${first}` : `, which was removed after ${major}.${last}`;
}

/** etcd renames flags when they are no longer experimental. */
function successor(name: string, { typeOf }: FlagsInVersion): string | null {
  const stable = name.replace(/^experimental-/, '');
  return stable === name || typeOf(stable) === null ? null : `Use --${stable}`;
}

function deprecatedArgument(name: string, known: FlagsInVersion): Problem {
  const hint = successor(name, known) ?? 'Remove the argument before a version without the flag is installed';
  return { code: 'FLAG_DEPRECATED', message: `--${name} is deprecated in ${known.program}`, hint, severity: 'warning' };
}

function asFatal(problem: Problem): Problem {
  return problem.severity === 'warning' ? problem : { ...problem, message: `${problem.message}: the component exits at startup` };
}

function asGuess(problem: Problem, component: StaticPodName): Problem {
  const hint = `${problem.hint ?? ''}${/[.?!]$/.test(problem.hint ?? '') ? '' : '.'} The image may have other flags: check with ${component} --help`;
  return { ...problem, hint, severity: 'warning' };
}
