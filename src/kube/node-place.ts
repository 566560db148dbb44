import type { Labels } from './label-selector.ts';
import { CONTROL_PLANE_LABEL } from './node-marks.ts';

/** The zone of a Node by its labels; the second label is that of clusters up to 1.16. Undefined: unknown. */
export function zoneOfLabels(labels: Labels): string | undefined {
  return labels['topology.kubernetes.io/zone'] || labels['failure-domain.beta.kubernetes.io/zone'] || undefined;
}

/** Whether a Node is a control plane by its labels; kubeadm up to 1.19 set only the second one. */
export function isControlPlaneNode(labels: Labels): boolean {
  return Object.hasOwn(labels, CONTROL_PLANE_LABEL) || Object.hasOwn(labels, 'node-role.kubernetes.io/master');
}
