import { definePhase } from '../../host/phase.ts';
import type { PhasePlan } from '../../host/plan/change.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { controllerUser } from '../../kubeadm/control-plane/controller-unit.ts';
import { findObjects } from '../../kubeadm/phases/find-objects.ts';
import { hostControllerObjects } from '../install/controller-objects.ts';
import { CONTROLLER_BINDING, hostsOfController } from '../install/controller-rights.ts';
import { planObjects, planRemoval } from '../use-cases/install-controller.ts';

interface Found {
  /** As `hostControllerObjects`. */
  readonly objects: readonly (KubeObject | null)[];
  /** The Nodes whose controllers have the rights. */
  readonly hosts: readonly string[];
}

/** The rights of all controllers on hosts are in the same bindings, whose users show on which hosts they run. */
async function findRights(cluster: Cluster): Promise<Found> {
  const [objects, binding] = await Promise.all([findObjects(cluster, hostControllerObjects([])), cluster.get(CONTROLLER_BINDING)]);
  return { objects, hosts: hostsOfController(binding) };
}

const objectsOf = (hosts: readonly string[]) => hostControllerObjects(hosts.map(controllerUser));

/** Creates the objects that the controller needs, and adds the user of one host to its rights. */
export const grantControllerRights = definePhase<{ readonly nodeName: string } | null, Found | null>({
  name: 'controller-rights',
  short: 'Create the CustomResourceDefinition of rollouts, and grant the rights of the controller to its user on this host',
  observe: async ({ cluster }, input) => (input === null || cluster === null ? null : findRights(cluster)),
  plan: (found, input) => {
    if (found === null || input === null) return { changes: [] };
    return planObjects(found.objects, objectsOf([...new Set([...found.hosts, input.nodeName])]));
  },
});

interface RevokedFacts extends Found {
  readonly removal: PhasePlan;
  /** Sentences. */
  readonly left: readonly string[];
}

/** Removes the user of one host from the rights of the controller; with the last one, the objects of the controller. */
export const revokeControllerRights = definePhase<
  { readonly nodeName: string; readonly removesDefinition: boolean } | null,
  RevokedFacts | null
>({
  name: 'controller-rights',
  short: 'Revoke the rights of the controller on this host; on the last one, delete the objects of the controller',
  observe: async ({ cluster }, input) => {
    if (input === null || cluster === null) return null;
    const [found, { plan: removal, left }] = await Promise.all([findRights(cluster), planRemoval(cluster, input)]);
    return { ...found, removal, left };
  },
  plan: (found, input) => {
    if (found === null || input === null) return { changes: [] };
    const { removal, hosts, objects } = found;
    const { nodeName } = input;
    const others = hosts.filter((name) => name !== nodeName);
    if (removal.changes.some((change) => 'ref' in change && change.ref.kind === 'Deployment'))
      return { changes: [], noop: 'the rights are those of the Deployment' };
    if (others.length === 0) return removal;
    // A run that was interrupted has changed only some of the bindings.
    if (objects.some((object) => hostsOfController(object).includes(nodeName))) return planObjects(objects, objectsOf(others));
    return { changes: [], noop: `the rights are those of ${others.join(', ')}` };
  },
  verify: async ({ host, reporter }, _, found, applied) => {
    if (!applied.some(({ kind }) => kind === 'delete-object')) return;
    for (const message of found?.left ?? [])
      reporter.report({ level: 'info', code: 'LEFT_BEHIND', host: host.name, phase: 'controller-rights', message });
  },
});
