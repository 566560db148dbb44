import type { Reporter } from '../../base/reporter.ts';
import type { Impact } from '../../host/plan/impact.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { requireEtcdMembers } from '../../maintenance/drain/etcd-members.ts';
import type { PlannedDrains } from '../../maintenance/drain/planned-drains.ts';
import { nodeHolds } from '../../maintenance/drain/while-drained.ts';
import { isRolledBack } from '../status/assess-node-config.ts';
import type { RolloutOutcome, RolloutPorts } from '../workflows/rollout.ts';

/** How the nodes of a rollout are drained, and the impact of the assignment on each. */
export interface NodeDraining {
  readonly policy: NonNullable<RunSettings['drain']>;
  readonly planned: PlannedDrains;
  /** The nodes that will be drained. */
  readonly toDrain?: readonly string[];
  /** Undefined: unknown. */
  readonly impactOf?: (name: string) => Impact | null | undefined;
  readonly isControlPlane?: (name: string) => boolean;
}

/** Takes the nodes of a rollout out of service before their change, and returns them afterwards. */
export interface NodeService {
  /** Marks the nodes that will be drained. */
  announce(): Promise<void>;
  /** Waits until the previous nodes are in service again, and drains the node if its change needs it. @throws as `NodeHolds.take` */
  begin(name: string): Promise<void>;
  /**
   * Returns a node to service; an error is thrown by `returned`, before the next node begins or at the end. A node whose
   * configuration is not verified stays cordoned: a later change may restore it.
   */
  end(outcome: RolloutOutcome): void;
  returned(): Promise<unknown>;
  /** Whether a node is in progress, or stays cordoned after it. */
  isOutOfService(name: string): boolean;
  /** Ends the changes whose result is not known. */
  close(): Promise<void>;
}

/** @param draining undefined: no node is drained */
export function nodeService(
  { signal, reporter }: Pick<RolloutPorts, 'signal'> & { readonly reporter: Reporter },
  cluster: Cluster,
  draining: NodeDraining | undefined,
): NodeService {
  const { planned } = draining ?? {};
  const ports = planned && { cluster, run: planned.run, signal, reporter };
  const holds = draining && ports && nodeHolds(ports, draining.policy);
  const returns: Promise<void>[] = [];
  /** Nodes whose earlier change was not verified: a later change that did not touch the node does not verify it. */
  const unproven = new Set<string>();
  const returnNode = async (outcome: RolloutOutcome): Promise<void> => {
    const { name, isTouched } = outcome;
    if (isVerified(outcome) || (!isTouched && !unproven.has(name))) await holds?.end(name, true);
    else unproven.add(name);
    await planned?.remove(name);
  };
  return {
    announce: async () => {
      if (draining?.policy.isAllowed === true) await planned?.add(cluster, draining.toDrain ?? []);
    },
    begin: async (name) => {
      await Promise.all(returns);
      if (ports !== undefined && draining?.isControlPlane?.(name) === true) await requireEtcdMembers(ports, name);
      await holds?.take(name, draining?.impactOf?.(name) ?? null);
    },
    end: (outcome) => {
      const returned = returnNode(outcome);
      returned.catch(() => undefined);
      returns.push(returned);
    },
    returned: () => Promise.all(returns),
    isOutOfService: (name) => holds?.has(name) === true,
    close: async () => {
      await Promise.allSettled(returns);
      await holds?.endAll();
      await planned?.removeAll();
    },
  };
}

/** Whether a node runs its new or its previous configuration for certain: otherwise it stays cordoned. */
function isVerified({ stage, validated: { verdict } }: RolloutOutcome): boolean {
  return stage === 'changed' || isRolledBack(verdict);
}
