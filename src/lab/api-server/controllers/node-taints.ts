import { itemsOf, memberOf } from '../members.ts';
import { CONTROLLER, type ControllerContext, forEachWritten, typeOf } from './controller.ts';

const NODES = typeOf('v1', 'Node');
const NOT_READY = 'node.kubernetes.io/not-ready';

/**
 * Removes the not-ready taint of a new Node when the Node becomes Ready, and adds it when the Node becomes
 * NotReady.
 * @see kubernetes/kubernetes pkg/controller/nodelifecycle (1.36)
 */
export function startNodeTaints(context: ControllerContext): void {
  forEachWritten(context, NODES, (node) => {
    const ready = itemsOf(memberOf(node, 'status'), 'conditions').find((condition) => condition.type === 'Ready')?.status;
    const taints = itemsOf(memberOf(node, 'spec'), 'taints');
    const tainted = taints.some((taint) => taint.key === NOT_READY && taint.effect === 'NoSchedule');
    if (ready === undefined || tainted === (ready !== 'True')) return;
    const others = taints.filter((taint) => taint.key !== NOT_READY || taint.effect !== 'NoSchedule');
    const desired = ready === 'True' ? others : [...others, { key: NOT_READY, effect: 'NoSchedule' }];
    const at = { namespace: '', name: node.metadata.name };
    context.registry.update(NODES, at, { ...node, spec: { ...memberOf(node, 'spec'), taints: desired } }, { user: CONTROLLER });
  });
}
