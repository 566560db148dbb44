import { type Phase, planOnly } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { CONTROL_PLANE_LABEL } from '../../../kube/node-marks.ts';
import { KUBE_SYSTEM } from '../../../kube/well-known.ts';
import { readMirrorPod } from '../../upgrade/static-pod-state.ts';

export interface OtherControlPlanes {
  readonly nodeName: string;
  /** The image of kube-apiserver after the upgrade. */
  readonly image: string;
}

/**
 * Skips a phase until all other control planes run the new API server: the add-ons serve all nodes, whose kubelets may
 * still use an older API server.
 * @see kubeadm 1.36 phases/upgrade/postupgrade.go UnupgradedControlPlaneInstances
 */
export function afterAllControlPlanes<Whole>(phase: Phase<Whole>, select: (input: Whole) => OtherControlPlanes): Phase<Whole> {
  return {
    ...phase,
    inspect: async (context, input) => {
      // Without an API server the phase itself is deferred.
      if (context.cluster === null) return phase.inspect(context, input);
      const left = await notUpgraded(context.cluster, select(input));
      if (left.length === 0) return phase.inspect(context, input);
      const noop = `skipped until all control planes are upgraded: ${left.join(', ')}`;
      return planOnly({ changes: [], noop });
    },
  };
}

/**
 * Names of the other control planes without a Ready Pod of kube-apiserver with the image. kubeadm compares only images of
 * existing Pods.
 */
async function notUpgraded(cluster: Cluster, { nodeName, image }: OtherControlPlanes): Promise<readonly string[]> {
  const [pods, nodes] = await Promise.all([
    cluster.list(
      { apiVersion: 'v1', kind: 'Pod', namespace: KUBE_SYSTEM },
      { labelSelector: 'component=kube-apiserver,tier=control-plane' },
    ),
    cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: CONTROL_PLANE_LABEL }),
  ]);
  const found = pods.items.map((pod) => {
    const name = (pod.spec as { readonly nodeName?: string } | undefined)?.nodeName ?? pod.metadata.name;
    const mirror = readMirrorPod(pod, 'kube-apiserver');
    return { name, isUpgraded: mirror?.image === image && mirror.isReady };
  });
  const upgraded = new Set(found.flatMap(({ name, isUpgraded }) => (isUpgraded ? [name] : [])));
  const all = new Set([...found.map(({ name }) => name), ...nodes.items.map(({ metadata }) => metadata.name)]);
  return [...all].filter((name) => name !== nodeName && !upgraded.has(name)).toSorted();
}
