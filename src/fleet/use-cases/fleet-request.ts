import type { KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import type { RulesRequest } from './fleet-rules.ts';
import type { ConnectionRequest } from './host-access.ts';
import type { WritingRequest } from './host-writing.ts';
import type { FleetRequest } from './load-fleet.ts';

/** Hosts of a fleet, and how they are reached. */
export interface FleetHostsRequest extends FleetRequest {
  readonly connection: ConnectionRequest;
}

/** What is done with the hosts of a fleet and their cluster, whichever command does it. */
export interface FleetRunRequest extends FleetHostsRequest {
  /** Replaces the cluster of the fleet file. */
  readonly cluster: KubeconfigRequest;
  readonly rules: RulesRequest;
  readonly writing: WritingRequest;
  readonly ignorePreflightErrors: readonly string[];
  /** Reuse the name of a Node that is not Ready. */
  readonly takeOver: boolean;
  /** Plan hosts again that changed since a plan was saved, and apply the new plan. */
  readonly replan: boolean;
  readonly verbosity: number;
}
