import type { RunTime } from '../../base/clock.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import { exceeds } from '../../host/plan/impact.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { HttpsClient } from '../../kube/https-client.ts';
import type { Catalogue, LiveChange } from '../../kubelet/catalogue/catalogue.ts';
import type { Timing } from '../../kubelet/health/assess.ts';
import type { AccessProblem } from './cluster-access.ts';
import type { AgentState } from './state.ts';

/** Behaviour of an agent, configured by the options of its command line. */
export interface AgentPolicy {
  readonly trialMs: number;
  readonly allow: LiveChange;
  /** Absolute path of the file of signers whose ConfigMaps are accepted; null: signatures are not required. */
  readonly signersFile: string | null;
  readonly spareCheckpoints: number;
  /** Period over which nodes apply an in-place edit of the ConfigMap. */
  readonly spreadMs: number;
  /** Listen address; null: none. */
  readonly listen: { readonly host: string; readonly port: number } | null;
}

/** Files of an agent and its kubelet, and the namespace. */
export interface AgentPlaces {
  /** Kubeconfig of the kubelet on its host: the agent authenticates with the kubelet's own credential. */
  readonly kubeconfig: string;
  /** The kubelet configuration while no ConfigMap is assigned. */
  readonly localConfig: string;
  /** ConfigMaps of other namespaces are not read. */
  readonly namespace: string;
  readonly directory: string;
}

/** An agent on its host. Its parts take the members that they need. */
export interface AgentOptions extends RunTime, AgentPlaces, Omit<AgentPolicy, 'trialMs' | 'listen'> {
  readonly nodeName: string;
  readonly cluster: Cluster;
  readonly host: Host;
  readonly web: HttpsClient;
  readonly reporter: Reporter;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly catalogue: Catalogue;
  readonly timing: Timing;
  /** Called after every step: for metrics and tests. */
  readonly onState?: (state: AgentState) => void;
  /** Called with false while the API server is unreachable or the Node does not exist. */
  readonly onNode?: (isKnown: boolean) => void;
  /**
   * Calls `onChange` when a file of the host changes, until the agent ends. Without it, changes are detected
   * at the next resync.
   */
  readonly watchFile?: ((path: string, onChange: () => void) => void) | undefined;
  /** Called with the requests that the API server refuses, at the start and at each change. */
  readonly onAccess?: ((problems: readonly AccessProblem[]) => void) | undefined;
}

/**
 * Whether an agent with this policy replaces state files of the kubelet's managers, as a change of cpuManagerPolicy
 * needs: its unit can then write to the root directory of the kubelet.
 */
export function canReplaceManagerState(allow: LiveChange): boolean {
  return !exceeds('drain', allow);
}
