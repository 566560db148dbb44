import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import type { ParseText } from '../../host/facts/parse-text.ts';
import type { HostPlan } from '../../host/plan/document.ts';
import type { RolloutMember } from '../../maintenance/next-step.ts';
import type { HostResult } from './member-results.ts';

/** A host of a run. */
export interface FleetMember extends Pick<RolloutMember, 'stage' | 'zone'> {
  readonly name: string;
  /** The Node that the fleet file declares. */
  readonly node?: string | undefined;
  /**
   * Changed while no other member is, and inspected after similar members that already started have ended,
   * because their changes affect it.
   */
  readonly isExclusive?: boolean;
  /** Required by the later stages: if this member fails, they are skipped. */
  readonly isNeeded?: boolean;
  /** Connects, inspects and plans; changes nothing on the host. */
  open(ports: MemberPorts): Promise<OpenMember>;
}

export interface MemberPorts {
  /** Parses texts of all hosts of the run. */
  readonly parseText: ParseText;
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
  /** The plan is not applied: nothing is prepared for it. If the host is changed, it is planned again before. */
  readonly isInspection: boolean;
  /** The connection of the inspection, which is used instead of a new one. */
  readonly connection?: Host | undefined;
}

/** An inspected host with its plan. */
export interface OpenMember {
  readonly planned: HostResult;
  /**
   * Applies the plan.
   * @param signal stops the run between changes; absent: the run is completed
   */
  apply(signal?: AbortSignal): Promise<HostPlan>;
  /**
   * Whether its Node is not Ready now; also after `close`. Absent: unknown.
   * @param waitMs time in which it may become Ready
   */
  isNodeDown?(waitMs: number): Promise<boolean>;
  /** Closes all but the connection, with which the host is opened again. Absent: there is none to keep. */
  release?(): Promise<Host>;
  close(): Promise<void>;
}
