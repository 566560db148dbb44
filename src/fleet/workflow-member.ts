import type { Clock } from '../base/clock.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Host } from '../host/host.ts';
import type { HostPlan } from '../host/plan/document.ts';
import type { PlanStep } from '../host/plan-after.ts';
import type { WriterOptions } from '../host/run-host.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { NodeClaims } from '../kubeadm/node-claims.ts';
import type { FleetMember } from './fleet.ts';

export interface WorkflowMember {
  readonly name: string;
  /** Plans the workflow of the host. */
  readonly planHost: PlanStep;
  /** Opens a new connection each time, whose requests the reporter logs. */
  readonly connect: (reporter: Reporter) => Promise<Host>;
  readonly cluster: Cluster | null;
  /** Replaces `cluster` if the host has its own route to the API server; closed when the host has ended. */
  readonly clusterOf?: (host: Host) => Promise<Cluster | null>;
  readonly clock: Clock;
  /** Null: files are staged, or nothing is changed. */
  readonly writing?: MemberWriting | null;
  /** Node claims of the run. */
  readonly claims?: NodeClaims | undefined;
}

/** Settings for writing to a host; changes are confirmed over a new connection made by `connect`. */
export interface MemberWriting extends Omit<WriterOptions, 'confirm'> {
  /** Time limit for confirming a kubelet change; null: final at once. */
  readonly confirmMs: number | null;
}

/** A host of a fleet run with its workflow. */
export function workflowMember(member: WorkflowMember): FleetMember {
  const { name, clock } = member;
  return {
    name,
    open: async ({ reporter, signal, parseText }) => {
      const host = await member.connect(reporter);
      let own: Cluster | null = null;
      const close = async (): Promise<void> => {
        await own?.close();
        await host.close();
      };
      try {
        own = (await member.clusterOf?.(host)) ?? null;
        const ports = { clock, reporter, parseText, ...(member.claims === undefined ? {} : { claim: member.claims.of(name) }) };
        const context = { host, cluster: own ?? member.cluster, ...ports, ...writingOf(member, reporter) };
        const { apply, ...planned } = await member.planHost({ ...context, signal });
        return {
          planned,
          apply: (until): Promise<HostPlan> => apply(until === undefined ? context : { ...context, signal: until }),
          close,
        };
      } catch (error) {
        await close();
        throw error;
      }
    },
  };
}

function writingOf({ writing, connect }: WorkflowMember, reporter: Reporter): { readonly writing?: WriterOptions } {
  if (writing === undefined || writing === null) return {};
  const { confirmMs, ...lock } = writing;
  return { writing: { ...lock, confirm: confirmMs === null ? null : { timeoutMs: confirmMs, reconnect: () => connect(reporter) } } };
}
