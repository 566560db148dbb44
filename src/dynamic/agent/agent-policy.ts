import { exceeds } from '../../host/plan/impact.ts';
import type { LiveChange } from '../../kubelet/catalogue/catalogue.ts';

/** Behaviour of an agent, configured by the options of its command line. */
export interface AgentPolicy {
  readonly trialMs: number;
  readonly allow: LiveChange;
  /** Absolute path of the file of signers whose ConfigMaps are accepted; null: signatures are not required. */
  readonly signersFile: string | null;
  /** Number of unused checkpoints that are kept. */
  readonly spareCheckpoints: number;
  readonly spreadMs: number;
  /** Listen address; null: none. */
  readonly listen: Address | null;
}

/** An address and a port to listen on. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Whether an agent with this policy replaces state files of the kubelet's managers, as a change of cpuManagerPolicy
 * needs: its unit can then write to the root directory of the kubelet.
 */
export function canReplaceManagerState(allow: LiveChange): boolean {
  return !exceeds('drain', allow);
}
