import { type Phase, type PhaseContext, planOnly } from '../../../host/phase.ts';
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
      const left = await notUpgraded(context, select(input));
      if (left.length === 0) return phase.inspect(context, input);
      const noop = `skipped until all control planes are upgraded: ${left.join(', ')}`;
      return planOnly({ changes: [], noop });
    },
  };
}

/** Names of the other Nodes with another image of kube-apiserver. */
async function notUpgraded({ cluster }: PhaseContext, { nodeName, image }: OtherControlPlanes): Promise<readonly string[]> {
  if (cluster === null) return [];
  const { items } = await cluster.list(
    { apiVersion: 'v1', kind: 'Pod', namespace: KUBE_SYSTEM },
    { labelSelector: 'component=kube-apiserver,tier=control-plane' },
  );
  const others = items.flatMap((pod) => {
    const node = (pod.spec as { readonly nodeName?: string } | undefined)?.nodeName ?? pod.metadata.name;
    return node !== nodeName && readMirrorPod(pod, 'kube-apiserver')?.image !== image ? [node] : [];
  });
  return others.toSorted();
}
