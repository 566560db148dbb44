import { type AppError, isAppError } from '../../../base/errors.ts';
import { groupBy } from '../../../base/group-by.ts';
import type { JsonObject } from '../../../base/json.ts';
import { printable } from '../../../base/text/printable.ts';
import { API_PAUSE, waitUntil } from '../../../base/wait-until.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { ClusterContext } from '../../../host/phase.ts';
import type { RunSettings } from '../../../host/run-settings.ts';
import type { CheckResult } from '../../../host/run-workflow.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { conditionOf, isNodeReady } from '../../../kube/node-conditions.ts';
import { CONTROL_PLANE_LABEL } from '../../../kube/node-marks.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { KUBE_SYSTEM } from '../../../kube/well-known.ts';
import { COREFILE_KEY } from '../../addons/coredns.ts';
import { checkCorefile } from '../../addons/corefile.ts';
import { dataOf } from '../../cluster-objects/cluster-info.ts';
import { applyClusterDefaults } from '../../config/defaults.ts';
import type { ClusterConfiguration } from '../../config/model.ts';
import { NEWEST_RELEASE_FACTS, releaseFacts } from '../../config/releases.ts';
import { imageTag, pauseImage } from '../../control-plane/images.ts';
import { manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import { type Finding, validateFindings } from '../../preflight/check.ts';
import type { VersionsByNode } from '../../upgrade/available-upgrades.ts';
import { KUBERNETES_COMPONENTS, missingManifests } from '../../upgrade/static-pod-state.ts';
import { applyForceUpgrade, checkUpgradeVersions, kubeletVersionsOf } from '../../upgrade/version-policy.ts';

export interface UpgradeChecks {
  /** Of kubeadm-config, with its present `kubernetesVersion`. */
  readonly cluster: ClusterConfiguration;
  /** `v1.36.2`; null: not decided (`upgrade plan` without a version). */
  readonly target: string | null;
  /** Permissions for the version; null: the version is not checked. */
  readonly versions: {
    readonly allowExperimental: boolean;
    readonly allowReleaseCandidates: boolean;
    readonly force: boolean;
  } | null;
  /** In a dry run, no Job is created. */
  readonly run: RunSettings;
}

/** What the checks have read from the cluster. */
export interface CheckedCluster {
  readonly nodes: readonly KubeObject[];
  /** As `deployedCorednsVersion`. */
  readonly coredns: string | null;
}

/**
 * Whether a cluster can be upgraded from this control plane host: the API server answers and runs a Job, all control plane
 * Nodes are Ready, the static Pods of the host have manifests, CoreDNS can be upgraded, and the version follows the rules.
 * The only write is the Job, which the cluster removes after it has finished.
 * @throws the errors of `host.query` and of `Cluster`
 * @see kubeadm 1.36 phases/upgrade/health.go, preflight.go, policy.go
 */
export async function checkUpgrade(
  context: ClusterContext,
  checks: UpgradeChecks,
): Promise<CheckResult & { readonly found: CheckedCluster }> {
  const { cluster, host } = context;
  const clusterVersion = await cluster.version();
  const corednsVersion = deployedCorednsVersion(cluster);
  const [nodes, manifests, coredns, version] = await Promise.all([
    cluster.list({ apiVersion: 'v1', kind: 'Node' }),
    manifestFindings(context),
    corednsFindings(cluster, checks, corednsVersion),
    corednsVersion,
  ]);
  const job = checks.run.dryRun ? [] : await jobFindings(context, checks, nodes.items);
  const findings = [...job, ...nodeFindings(nodes.items), ...manifests, ...coredns];
  const { errors, warnings } = validateFindings(findings, [checks.run], host.name);
  const versions = versionVerdict(checks, clusterVersion, nodes.items);
  return {
    refusals: [...errors, ...versions.refusals],
    warnings: [...warnings.map(({ id, message }) => ({ code: id, message })), ...versions.warnings],
    found: { nodes: nodes.items, coredns: version },
  };
}

function versionVerdict({ target, versions }: UpgradeChecks, clusterVersion: string, nodes: readonly KubeObject[]): CheckResult {
  if (target === null || versions === null) return { refusals: [], warnings: [] };
  const { allowExperimental, allowReleaseCandidates, force } = versions;
  const kubeletVersions = kubeletVersionsOf(nodes);
  const verdict = checkUpgradeVersions({ target, clusterVersion, kubeletVersions, allowExperimental, allowReleaseCandidates });
  return applyForceUpgrade(verdict, force);
}

function nodeFindings(nodes: readonly KubeObject[]): readonly Finding[] {
  const controlPlanes = nodes.filter(({ metadata }) => CONTROL_PLANE_LABEL in (metadata.labels ?? {}));
  const notReady = controlPlanes.filter((node) => !isNodeReady(node)).map(({ metadata }) => metadata.name);
  if (notReady.length === 0) return [];
  const message = `control plane Nodes are NotReady: ${notReady.join(', ')}`;
  return [{ id: 'ControlPlaneNodesReady', severity: 'error', message, hint: `Find the reason with: kubectl describe node ${notReady[0]}` }];
}

async function manifestFindings({ host, signal }: ClusterContext): Promise<readonly Finding[]> {
  const files = await observe(host, fileFacts(KUBERNETES_COMPONENTS.map(manifestPath)), signal);
  const missing = missingManifests((path) => (files.get(path) ?? null) !== null);
  return missing === null ? [] : [{ id: 'StaticPodManifest', severity: 'error', ...missing }];
}

async function corednsFindings(
  cluster: Cluster,
  { cluster: settings, target }: UpgradeChecks,
  version: Promise<string | null>,
): Promise<readonly Finding[]> {
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name: 'coredns' });
  if (found === null) return [];
  const corefile = dataOf(found)[COREFILE_KEY];
  if (corefile === undefined) return [corednsError(`ConfigMap kube-system/coredns has no key ${COREFILE_KEY}`)];
  const from = await version;
  if (from === 'several') return [corednsError('several Deployments in kube-system have the label k8s-app=kube-dns')];
  const facts = target === null ? NEWEST_RELEASE_FACTS : releaseFacts(target);
  const { issue, unsupported } = checkCorefile(corefile, { from: from ?? '', to: settings.dns?.imageTag ?? facts.coredns });
  const message = `the Corefile has plugins or options whose compatibility with the new CoreDNS is unknown: ${unsupported.join(', ')}`;
  const hint = 'Compare these plugins with the documentation of the new CoreDNS. The upgrade keeps the plugins';
  return [
    ...(unsupported.length === 0 ? [] : [{ id: 'CoreDNSUnsupportedPlugins', severity: 'error', message, hint } as const]),
    ...(issue === null ? [] : [corednsError(issue)]),
  ];
}

function corednsError(issue: string): Finding {
  return { id: 'CoreDNSMigration', severity: 'error', message: `CoreDNS cannot be upgraded: ${issue}` };
}

const JOB_TIMEOUT_MS = 60_000;
/** The Job outlives the wait by some seconds. */
const JOB_SECONDS = 65;
const JOB_NAME = 'upgrade-health-check';

/** Whether the cluster runs a Job. Skipped, as in kubeadm, when no Node accepts Pods. */
async function jobFindings(context: ClusterContext, checks: UpgradeChecks, nodes: readonly KubeObject[]): Promise<readonly Finding[]> {
  if (!nodes.some(isSchedulable))
    return [{ id: 'CreateJob', severity: 'warning', message: 'the cluster was not tested with a Job, because no Node is schedulable' }];
  const job = healthJob(`${JOB_NAME}-${context.clock.now().getTime()}`, pauseImage(applyClusterDefaults(checks.cluster)));
  const issue = (await createJob(context, job)) ?? (await waitForJob(context, job));
  if (issue === null) return [];
  const hint = `See: kubectl -n ${KUBE_SYSTEM} describe job ${job.metadata.name}`;
  return [{ id: 'CreateJob', severity: 'error', message: issue, hint }];
}

function isSchedulable({ spec }: KubeObject): boolean {
  return (spec as { readonly unschedulable?: boolean } | undefined)?.unschedulable !== true;
}

/** The reason why the Job was not created; null: created. */
function createJob(context: ClusterContext, job: KubeObject): Promise<string | null> {
  return waitUntil<string | null, AppError>(context, {
    probe: async () => {
      try {
        await context.cluster.create(job);
        return { done: null };
      } catch (error) {
        if (!isAppError(error)) throw error;
        return isAppError(error, 'CLUSTER_ALREADY_EXISTS') ? { done: null } : { pending: error };
      }
    },
    timeoutMs: JOB_TIMEOUT_MS,
    pauseMs: API_PAUSE,
    timedOut: (error) => `Job kube-system/${job.metadata.name} was not created: ${error.problems[0]?.message ?? ''}`,
  });
}

/** The reason why the Job did not complete; null: completed. */
function waitForJob(context: ClusterContext, job: KubeObject): Promise<string | null> {
  const { name } = job.metadata;
  return waitUntil<string | null, string>(context, {
    probe: async () => {
      try {
        const found = await context.cluster.get({ apiVersion: 'batch/v1', kind: 'Job', namespace: KUBE_SYSTEM, name });
        if (found !== null && conditionOf(found, 'Complete')?.status === 'True') return { done: null };
        const failed = found === null ? null : conditionOf(found, 'Failed');
        return { pending: printable(failed?.message ?? 'no condition Complete', 400) };
      } catch (error) {
        if (!isAppError(error)) throw error;
        return { pending: error.problems[0]?.message ?? '' };
      }
    },
    timeoutMs: JOB_TIMEOUT_MS,
    pauseMs: API_PAUSE,
    timedOut: (why) => `Job kube-system/${name} did not complete within ${JOB_TIMEOUT_MS / 1000}s: ${why}`,
    describe: (why) => `waiting for Job kube-system/${name}, which tests that the cluster runs Pods: ${why}`,
  });
}

/**
 * A Job whose container prints its version and exits.
 * @see kubeadm 1.36 phases/upgrade/health.go createJob
 */
function healthJob(name: string, image: string): KubeObject {
  const spec: JsonObject = {
    backoffLimit: 0,
    ttlSecondsAfterFinished: JOB_SECONDS,
    activeDeadlineSeconds: JOB_SECONDS,
    template: {
      spec: {
        restartPolicy: 'Never',
        securityContext: { runAsUser: 999, runAsGroup: 999, runAsNonRoot: true },
        tolerations: [{ key: CONTROL_PLANE_LABEL, effect: 'NoSchedule' }],
        containers: [{ name: JOB_NAME, image, args: ['-v'] }],
      },
    },
  };
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace: KUBE_SYSTEM }, spec };
}

/**
 * The versions of a control plane component on all control planes, from the images of its Pods.
 * @see kubeadm 1.36 phases/upgrade/versiongetter.go ComponentVersions
 */
export async function componentVersions(cluster: Cluster, name: StaticPodName): Promise<VersionsByNode> {
  const pods = { apiVersion: 'v1', kind: 'Pod', namespace: KUBE_SYSTEM };
  const { items } = await cluster.list(pods, { labelSelector: `component=${name},tier=control-plane` });
  const specs = items.map(({ spec }) => spec as PodSpec | undefined);
  const byVersion = groupBy(specs, (spec) => imageTag(spec?.containers?.[0]?.image ?? '').replaceAll('_', '+'));
  return new Map([...byVersion].map(([version, found]) => [version, found.map((spec) => spec?.nodeName ?? '')]));
}

/** The image tag of the CoreDNS Deployment; null: no Deployment; `several`: the version is ambiguous. */
async function deployedCorednsVersion(cluster: Cluster): Promise<string | null> {
  const deployments = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: KUBE_SYSTEM };
  const { items } = await cluster.list(deployments, { labelSelector: 'k8s-app=kube-dns' });
  const [only, another] = items as readonly (KubeObject & { readonly spec?: { readonly template?: { readonly spec?: PodSpec } } })[];
  if (only === undefined) return null;
  return another === undefined ? imageTag(only.spec?.template?.spec?.containers?.[0]?.image ?? '') : 'several';
}

interface PodSpec {
  readonly nodeName?: string;
  readonly containers?: readonly { readonly image?: string }[];
}
