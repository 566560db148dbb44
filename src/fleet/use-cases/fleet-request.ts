import { type RunSettings, toPlan } from '../../host/run-settings.ts';
import type { KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import { CONFIG_OVERRIDDEN } from '../../kubeadm/workflows/node/check-config-source.ts';
import type { RulesRequest } from './fleet-rules.ts';
import type { ConnectionRequest } from './host-access.ts';
import type { WritingRequest } from './host-writing.ts';
import type { FleetRequest } from './load-fleet.ts';

/** Selection of hosts of a fleet, and connection options. */
export interface FleetHostsRequest extends FleetRequest {
  readonly connection: ConnectionRequest;
}

/** Options of all commands that process the hosts and the cluster of a fleet. */
export interface FleetRunRequest extends FleetHostsRequest {
  /** Replaces the cluster of the fleet file. */
  readonly cluster: KubeconfigRequest;
  readonly rules: RulesRequest;
  readonly writing: WritingRequest;
  /** An undefined `allow` is that of a saved plan, otherwise `DEFAULT_ALLOWED`. */
  readonly run: RunSettings;
  /** Reuse the name of a Node that is not Ready. */
  readonly takeOver: boolean;
  /** Create and apply a new plan for hosts that changed since a plan was saved. */
  readonly replan: boolean;
  /** Apply a saved plan also to hosts that it has changed already. */
  readonly again: boolean;
  /** Path of a bundle whose images and files the hosts get. Undefined: none. */
  readonly bundle?: string | undefined;
  readonly verbosity: number;
}

/** The request of a run that compares hosts: a field that a ConfigMap overrides is drift, and no failure. */
export function toCompare(request: FleetRunRequest): FleetRunRequest {
  const ignorePreflightErrors = [...request.run.ignorePreflightErrors, CONFIG_OVERRIDDEN];
  return toPlan({ ...request, run: { ...request.run, podLoss: 'ignore', allow: 'unsafe', ignorePreflightErrors } });
}
