import type { HostPlan } from '../core/plan/document.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Host } from '../ports/host.ts';
import type { FleetMember } from './fleet.ts';
import { planWorkflow, type Workflow, type WorkflowRun } from './run-workflow.ts';
import { tellingHost } from './telling-host.ts';

export interface WorkflowMember<Options, Input> {
  readonly name: string;
  readonly workflow: Workflow<Options, Input>;
  readonly options: Options;
  readonly run: WorkflowRun;
  readonly connect: () => Promise<Host>;
  readonly cluster: Cluster | null;
  /** In place of `cluster` where the host has its own way to the API server; closed when the host is done. */
  readonly clusterOf?: (host: Host) => Promise<Cluster>;
  readonly clock: Clock;
}

/** A host on which a workflow is to run. */
export function workflowMember<Options, Input>(member: WorkflowMember<Options, Input>): FleetMember {
  const { name, workflow, options, run, clock } = member;
  return {
    name,
    open: async ({ reporter, signal }) => {
      const host = tellingHost(await member.connect(), reporter);
      let own: Cluster | null = null;
      const close = async (): Promise<void> => {
        await own?.close();
        await host.close();
      };
      try {
        own = (await member.clusterOf?.(host)) ?? null;
        const context = { host, cluster: own ?? member.cluster, clock, reporter };
        const { apply, ...planned } = await planWorkflow(workflow, { ...context, signal }, options, run);
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
