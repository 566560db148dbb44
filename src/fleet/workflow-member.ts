import type { Clock } from '../base/clock.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Host } from '../host/host.ts';
import type { WriterOptions } from '../host/locked-host.ts';
import { loggingHost } from '../host/logging-host.ts';
import type { PhaseContext } from '../host/phase.ts';
import type { HostPlan } from '../host/plan/document.ts';
import { type PlanStep, planAfter } from '../host/plan-after.ts';
import { type PlannedWorkflow, planWorkflow, type Workflow, type WorkflowRun } from '../host/run-workflow.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { NodeClaims } from '../kubeadm/node-claims.ts';
import type { FleetMember } from './fleet.ts';

export interface WorkflowMember<Options, Input> {
  readonly name: string;
  readonly workflow: Workflow<Options, Input>;
  readonly options: Options;
  /** What has to be done before the workflow can be prepared. */
  readonly first?: PlanStep;
  readonly run: WorkflowRun;
  /** A connection of its own each time. */
  readonly connect: () => Promise<Host>;
  readonly cluster: Cluster | null;
  /** In place of `cluster` where the host has its own way to the API server; closed when the host is done. */
  readonly clusterOf?: (host: Host) => Promise<Cluster | null>;
  readonly clock: Clock;
  /** Null: files are staged, or nothing is to be changed. */
  readonly writing?: MemberWriting | null;
  /** Of the run. */
  readonly claims?: NodeClaims | undefined;
}

/** How a host is written to; what is confirmed is over a connection made by `connect`. */
export interface MemberWriting extends Omit<WriterOptions, 'confirm'> {
  /** Within this time a change of the kubelet has to be confirmed; null: it is final at once. */
  readonly confirmMs: number | null;
}

/** A host on which a workflow is to run. */
export function workflowMember<Options, Input>(member: WorkflowMember<Options, Input>): FleetMember {
  const { name, clock } = member;
  return {
    name,
    open: async ({ reporter, signal }) => {
      const host = loggingHost(await member.connect(), reporter);
      let own: Cluster | null = null;
      const close = async (): Promise<void> => {
        await own?.close();
        await host.close();
      };
      try {
        own = (await member.clusterOf?.(host)) ?? null;
        const ports = { clock, reporter, ...(member.claims === undefined ? {} : { claim: member.claims.of(name) }) };
        const context = { host, cluster: own ?? member.cluster, ...ports, ...writingOf(member, reporter) };
        const { apply, ...planned } = await planMember(member, { ...context, signal });
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

function planMember<Options, Input>(
  { workflow, options, run, first }: WorkflowMember<Options, Input>,
  context: PhaseContext,
): Promise<PlannedWorkflow> {
  const then: PlanStep = (own) => planWorkflow(workflow, own, options, run);
  return first === undefined ? then(context) : planAfter(context, { first, then, thenPhases: workflow.phases.map(({ name }) => name) });
}

function writingOf<Options, Input>(
  { writing, connect }: WorkflowMember<Options, Input>,
  reporter: Reporter,
): { readonly writing?: WriterOptions } {
  if (writing === undefined || writing === null) return {};
  const { confirmMs, ...lock } = writing;
  const reconnect = async (): Promise<Host> => loggingHost(await connect(), reporter);
  return { writing: { ...lock, confirm: confirmMs === null ? null : { timeoutMs: confirmMs, reconnect } } };
}
