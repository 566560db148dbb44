import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { jsonContains } from '../../base/json.ts';
import type { Reporter } from '../../base/reporter.ts';
import { applyClusterChange } from '../../host/apply.ts';
import type { ObjectChange, PhasePlan } from '../../host/plan/change.ts';
import { changedRef } from '../../host/plan/change.ts';
import { diffObject } from '../../host/plan/object-diff.ts';
import { diffRbac } from '../../host/plan/rbac-diff.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { describeRef, type KubeObject, refOf } from '../../kube/object.ts';
import { findObjects } from '../../kubeadm/phases/find-objects.ts';
import { listAt } from '../../kubelet/documents/values.ts';
import { cordonOwner, isCordoned } from '../../maintenance/node-hold.ts';
import { rolloutDefinition } from '../api/crd.ts';
import { ROLLOUT_API_VERSION, ROLLOUT_KIND } from '../api/schema.ts';
import { HOLD_PREFIX } from '../controller/change-nodes.ts';
import { FINALIZER } from '../controller/controller.ts';
import { leaderLease } from '../controller/lease.ts';
import { controllerObjects } from '../install/controller-objects.ts';
import { CONTROLLER_BINDING, hostsOfController } from '../install/controller-rights.ts';

/**
 * The changes that install the controller, or update it to another image or version. Labels and annotations of others are kept.
 * @param cluster null: a dry run without an API server
 * @throws AppError CONTROLLER_INSTALLED (exit code 3) if controllers run on hosts
 */
export async function planInstallation(cluster: Cluster | null, image: string): Promise<PhasePlan> {
  const desired = controllerObjects(image);
  const hosts = hostsOfController((await cluster?.get(CONTROLLER_BINDING)) ?? null);
  if (hosts.length > 0) throw new AppError(runsOnHosts(hosts), { exitCode: 3 });
  return planObjects(await findObjects(cluster, desired), desired);
}

/** The changes from the found objects to the desired ones. */
export function planObjects(found: readonly (KubeObject | null)[], desired: readonly KubeObject[]): PhasePlan {
  const changes = desired.flatMap((object, i) => changesOf(found[i] ?? null, object));
  return changes.length === 0 ? { changes, noop: 'the objects of the controller are up to date' } : { changes };
}

function runsOnHosts(hosts: readonly string[]): Problem {
  const message = `the controller is already installed on hosts: ${hosts.join(', ')}`;
  const hint = `Remove it there first: kubeletadm controller uninstall ${hosts.map((host) => `--host ${host}`).join(' ')}`;
  return { code: 'CONTROLLER_INSTALLED', message, hint };
}

function changesOf(found: KubeObject | null, desired: KubeObject): readonly ObjectChange[] {
  if (desired.apiVersion.startsWith('rbac.')) return diffRbac(found, desired);
  if (found === null) return [{ kind: 'create-object', object: desired, reason: 'does not exist' }];
  const { metadata, spec } = desired;
  const labels = { ...found.metadata.labels, ...metadata.labels };
  const isEqual =
    jsonContains(found.metadata.labels ?? {}, metadata.labels ?? {}) && (spec === undefined || jsonContains(found.spec, spec));
  if (isEqual) return [];
  const object = { ...found, metadata: { ...found.metadata, labels }, ...(spec === undefined ? {} : { spec }) } as KubeObject;
  return [{ kind: 'update-object', object, before: found, reason: diffObject(found, desired)?.reason ?? 'differs' }];
}

/**
 * The changes that remove the controller. The namespace with the ConfigMaps of the nodes stays.
 * @param options.removesDefinition also delete the CustomResourceDefinition
 * @param options.nodeName Node of a host that is changed as well, and keeps nothing
 * @returns the changes, and what stays, as sentences
 * @throws AppError ROLLOUTS_EXIST (exit code 3) if the definition is to be deleted, and with it rollouts that a controller must end
 */
export async function planRemoval(
  cluster: Cluster,
  { removesDefinition, nodeName }: { readonly removesDefinition: boolean; readonly nodeName?: string },
) {
  const definition = refOf(rolloutDefinition());
  // Also those that this version cannot read.
  const rollouts = await listObjects(cluster, { apiVersion: ROLLOUT_API_VERSION, kind: ROLLOUT_KIND });
  if (removesDefinition && rollouts.length > 0) throw rolloutsExist(rollouts.map(({ metadata }) => metadata.name));
  const kept = ['Namespace', ...(removesDefinition ? [] : [definition.kind])];
  const refs = [
    ...controllerObjects('')
      .filter(({ kind }) => !kept.includes(kind))
      .map(refOf)
      .toReversed(),
    leaderLease(AGENT_NAMESPACE),
  ];
  const found = await Promise.all(refs.map((ref) => cluster.get(ref)));
  const changes = refs.flatMap((ref, i): readonly ObjectChange[] =>
    found[i] === null ? [] : [{ kind: 'delete-object', ref, reason: 'the controller is removed' }],
  );
  const hosts = hostsOfController(await cluster.get(CONTROLLER_BINDING)).filter((name) => name !== nodeName);
  const names = namesOf(rollouts);
  const endless = namesOf(rollouts.filter((rollout) => listAt(rollout, 'metadata.finalizers').includes(FINALIZER)));
  const nodes = await listObjects(cluster, { apiVersion: 'v1', kind: 'Node' });
  const cordoned = nodes.filter((node) => isCordoned(node) && cordonOwner(node)?.run.startsWith(HOLD_PREFIX));
  const left = [
    `Nodes keep their configuration. Namespace ${AGENT_NAMESPACE} stays, with the ConfigMaps of the nodes.`,
    ...(hosts.length === 0
      ? []
      : [
          `Hosts keep the program, which has no rights any more: ${hosts.join(', ')}. Remove it: kubeletadm controller uninstall --host HOST`,
        ]),
    ...(removesDefinition
      ? []
      : [`CustomResourceDefinition ${definition.name} stays${names === '' ? '' : `, with the rollouts ${names}`}.`]),
    ...(endless === ''
      ? []
      : [`Without a controller, kubectl delete of these rollouts does not finish (deletionPolicy: Reset): ${endless}.`]),
    ...(cordoned.length === 0
      ? []
      : [`Nodes that a rollout has cordoned stay cordoned; uncordon them: kubeletadm uncordon ${namesOf(cordoned, ' ')}`]),
  ];
  const plan: PhasePlan = changes.length === 0 ? { changes, noop: 'no controller is installed' } : { changes };
  return { plan, left };
}

/** Empty without the definition of the kind. */
async function listObjects(cluster: Cluster, kind: Parameters<Cluster['list']>[0]): Promise<readonly KubeObject[]> {
  try {
    return (await cluster.list(kind)).items;
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_NO_SUCH_KIND')) throw error;
    return [];
  }
}

function namesOf(objects: readonly KubeObject[], separator = ', '): string {
  return objects.map(({ metadata }) => metadata.name).join(separator);
}

function rolloutsExist(names: readonly string[]): AppError {
  return new AppError(
    {
      code: 'ROLLOUTS_EXIST',
      message: `rollouts exist, and would be deleted with their CustomResourceDefinition: ${names.join(', ')}`,
      hint: 'Delete them while the controller runs, so that it resets the nodes of those with deletionPolicy: Reset: kubectl delete kcr --all',
    },
    { exitCode: 3 },
  );
}

/** Applies the changes in their order. @throws the errors of the API server */
export async function applyObjects(cluster: Cluster, { changes }: PhasePlan, reporter: Reporter): Promise<void> {
  for (const change of changes as readonly ObjectChange[]) {
    await applyClusterChange(cluster, change);
    const verb = { 'create-object': 'created', 'update-object': 'updated', 'delete-object': 'deleted' }[change.kind as string] ?? 'changed';
    reporter.report({ level: 'info', code: 'CHANGE_DONE', message: `${verb} ${describeRef(changedRef(change))}` });
  }
}
