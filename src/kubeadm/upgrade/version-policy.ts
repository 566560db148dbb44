import type { Problem } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import { compareSemanticVersions, parseSemanticVersion, type SemanticVersion } from '../../base/semantic-version.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { KubeObject } from '../../kube/object.ts';
import { RELEASES, type ReleaseFacts } from '../config/releases.ts';

/** Minors that a control plane may be upgraded or downgraded by in one run. */
const MAX_MINORS = 1;
/** Minors that a kubelet may be older than its API server. */
const MAX_KUBELET_MINORS = 3;

export interface UpgradeVersions {
  /** The version to upgrade to: `v1.36.2`. */
  readonly target: string;
  /** The version of the API server. */
  readonly clusterVersion: string;
  /** Node names by the version of their kubelet; null: the Nodes could not be listed. */
  readonly kubeletVersions: ReadonlyMap<string, readonly string[]> | null;
  /** `--allow-experimental-upgrades`: all pre-releases. */
  readonly allowExperimental: boolean;
  /** `--allow-release-candidate-upgrades` */
  readonly allowReleaseCandidates: boolean;
}

/**
 * Whether a control plane may be upgraded to a version. The rules are those of kubeadm with two differences: kubeadm can
 * only upgrade to its own minor, and requires `--force` for a later patch than its own; this program upgrades to each minor
 * in `RELEASES`.
 * @returns `mandatory`: refused even with `--force`; `skippable`: refused without
 * @param releases the minors with known facts, in ascending order
 * @see kubeadm 1.36 phases/upgrade/policy.go EnforceVersionPolicies
 */
export function checkUpgradeVersions(versions: UpgradeVersions, releases: readonly ReleaseFacts[] = RELEASES) {
  const target = parseSemanticVersion(versions.target);
  const cluster = parseSemanticVersion(versions.clusterVersion);
  if (target === null) return refused(unreadable('the version to upgrade to', versions.target));
  if (cluster === null) return refused(unreadable('the version of the API server', versions.clusterVersion));
  const isRelease = target.preRelease === '';
  const skips = [...tooFar(versions.target, target, cluster), ...tooNew(versions.target, target, releases)];
  return {
    mandatory: [...tooOld(versions.target, target, releases), ...(isRelease ? skips : [])],
    skippable: [...(isRelease ? [] : skips), ...unstable(versions, target), ...kubelets(versions, target)],
    warnings: [...assumed(versions.target, target, releases), ...newerKubelets(versions, target)],
  };
}

/**
 * The verdict as refusals and warnings of a run.
 * @param force `--force`: the problems that it may skip become warnings
 */
export function applyForceUpgrade(
  { mandatory, skippable, warnings }: ReturnType<typeof checkUpgradeVersions>,
  force: boolean,
): { readonly refusals: readonly Problem[]; readonly warnings: readonly Warning[] } {
  if (!force) return { refusals: [...mandatory, ...skippable.map(withForceHint)], warnings };
  return { refusals: mandatory, warnings: [...skippable.map(({ code, message }) => ({ code, message })), ...warnings] };
}

/** Node names by the version of their kubelet. */
export function kubeletVersionsOf(nodes: readonly KubeObject[]): ReadonlyMap<string, readonly string[]> {
  const known = nodes as readonly (KubeObject & { readonly status?: { readonly nodeInfo?: { readonly kubeletVersion?: string } } })[];
  const byVersion = groupBy(known, ({ status }) => status?.nodeInfo?.kubeletVersion ?? '');
  return new Map([...byVersion].map(([version, items]) => [version, items.map(({ metadata }) => metadata.name)]));
}

function withForceHint(problem: Problem): Problem {
  return { ...problem, hint: `${problem.hint === undefined ? '' : `${problem.hint}. `}To continue anyway, use --force` };
}

function refused(problem: Problem) {
  return { mandatory: [problem], skippable: [], warnings: [] };
}

function unreadable(whose: string, version: string): Problem {
  return {
    code: 'UPGRADE_VERSION_INVALID',
    message: `${whose} is ${JSON.stringify(version)}, not a semantic version`,
    hint: 'Example: v1.36.2',
  };
}

/** A pre-release of the oldest minor is too old as well. */
function tooOld(text: string, target: SemanticVersion, releases: readonly ReleaseFacts[]): readonly Problem[] {
  const oldest = { major: 1, minor: releases[0]?.minor ?? 0, patch: 0, preRelease: '' };
  if (compareSemanticVersions(target, oldest) >= 0) return [];
  const message = `${text} is older than v1.${oldest.minor}.0, the oldest supported control plane`;
  return [{ code: 'UPGRADE_TARGET_TOO_OLD', message, hint: 'Upgrade to a later version' }];
}

function tooFar(text: string, target: SemanticVersion, cluster: SemanticVersion): readonly Problem[] {
  const by = target.minor - cluster.minor;
  if (target.major === cluster.major && Math.abs(by) <= MAX_MINORS) return [];
  const from = `v${cluster.major}.${cluster.minor}.${cluster.patch}`;
  const [verb, next] = by > 0 ? ['upgraded', cluster.minor + MAX_MINORS] : ['downgraded', cluster.minor - MAX_MINORS];
  const message = `a control plane cannot be ${verb} from ${from} to ${text} in one step: each step changes at most ${MAX_MINORS} minor version`;
  return [{ code: 'UPGRADE_SKIPS_MINOR', message, hint: `First change to the latest release of v${cluster.major}.${next}` }];
}

function tooNew(text: string, target: SemanticVersion, releases: readonly ReleaseFacts[]): readonly Problem[] {
  const newest = releases.at(-1)?.minor ?? 0;
  if (target.major === 1 && target.minor <= newest) return [];
  const message = `${text} is newer than 1.${newest}, the newest control plane that this kubeletadm knows`;
  return [{ code: 'UPGRADE_TARGET_TOO_NEW', message, hint: 'Upgrade kubeletadm first' }];
}

function unstable(
  { target: text, allowExperimental, allowReleaseCandidates }: UpgradeVersions,
  { preRelease }: SemanticVersion,
): readonly Problem[] {
  if (preRelease === '' || allowExperimental) return [];
  const isCandidate = preRelease.startsWith('rc');
  if (isCandidate && allowReleaseCandidates) return [];
  const flag = isCandidate ? '--allow-release-candidate-upgrades' : '--allow-experimental-upgrades';
  return [{ code: 'UPGRADE_TARGET_UNSTABLE', message: `${text} is a pre-release`, hint: `Allow pre-releases with ${flag}` }];
}

function kubelets({ kubeletVersions }: UpgradeVersions, target: SemanticVersion): readonly Problem[] {
  if (kubeletVersions === null)
    return [
      {
        code: 'UPGRADE_KUBELETS_UNKNOWN',
        message: 'the Nodes of the cluster cannot be listed, so the versions of their kubelets are unknown',
        hint: 'Use the kubeconfig of an administrator',
      },
    ];
  const read = parseKubelets(kubeletVersions);
  const unread = read.filter(({ version }) => version === null);
  const old = read.filter(({ version }) => version !== null && target.minor > version.minor + MAX_KUBELET_MINORS);
  return [
    ...unread.map(({ text, nodes }) => unreadable(`the version of the kubelet on ${nodes.join(', ')}`, text)),
    ...(old.length === 0
      ? []
      : [
          {
            code: 'UPGRADE_KUBELETS_TOO_OLD',
            message: `kubelets are more than ${MAX_KUBELET_MINORS} minor versions older than 1.${target.minor}: ${namesOf(old)}`,
            hint: 'Upgrade these kubelets first',
          },
        ]),
  ];
}

function newerKubelets({ kubeletVersions }: UpgradeVersions, target: SemanticVersion): readonly Warning[] {
  const newer = parseKubelets(kubeletVersions ?? new Map()).filter(({ version }) => version !== null && version.minor > target.minor);
  if (newer.length === 0) return [];
  const message = `kubelets are newer than the new control plane (1.${target.minor}): ${namesOf(newer)}. Kubernetes does not support this. Downgrade these kubelets first`;
  return [{ code: 'UPGRADE_KUBELETS_NEWER', message }];
}

/** `version` is null if it is not a semantic version. */
function parseKubelets(versions: ReadonlyMap<string, readonly string[]>) {
  return [...versions].map(([text, nodes]) => ({ text, nodes, version: parseSemanticVersion(text) }));
}

function namesOf(kubelets: ReturnType<typeof parseKubelets>): string {
  return kubelets.map(({ text, nodes }) => `${text} on ${nodes.join(', ')}`).join('; ');
}

function assumed(text: string, target: SemanticVersion, releases: readonly ReleaseFacts[]): readonly Warning[] {
  const facts = releases.find(({ minor }) => minor === target.minor)?.assumed ?? [];
  if (facts.length === 0) return [];
  const message = `${text} is newer than all releases that this kubeletadm was tested with: the ${facts.join(' and ')} of 1.${target.minor - 1} are used`;
  return [{ code: 'UPGRADE_FACTS_ASSUMED', message }];
}
