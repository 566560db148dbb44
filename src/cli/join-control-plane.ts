import { type ExitCode, usageError } from '../base/errors.ts';
import { isThisMachine } from '../fleet/host-target.ts';
import { planWorkflow } from '../host/run-workflow.ts';
import type { JoinConfiguration } from '../kubeadm/config/model.ts';
import { caDirectoriesHere, connectOver, proxyEnvironment, routeHere } from '../kubeadm/use-cases/control-plane-inputs.ts';
import { phaseSelection } from '../kubeadm/use-cases/init-phases.ts';
import type { ReadNodeOptions } from '../kubeadm/use-cases/node-options.ts';
import type { ApiAccess } from '../kubeadm/workflows/control-plane/api-access.ts';
import type { JoinOptions } from '../kubeadm/workflows/join.ts';
import { type JoinControlPlaneOptions, joinControlPlaneWorkflow } from '../kubeadm/workflows/join-control-plane.ts';
import { type HostsRun, runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';

export interface JoinControlPlaneRun extends Omit<HostsRun, 'planHost' | 'onlyPhase'> {
  readonly onlyPhase: string | undefined;
  readonly node: ReadNodeOptions;
  readonly workflowOptions: JoinOptions;
  readonly document: JoinConfiguration;
}

/** `join --control-plane`: one host at a time, as etcd takes one member at a time. */
export async function runJoinControlPlane(services: Services, run: JoinControlPlaneRun): Promise<ExitCode> {
  const { node, workflowOptions: joinOptions, document, targets, plan, onlyPhase, ...rest } = run;
  if (targets.length > 1)
    throw usageError(
      `${targets.length} control planes cannot join at a time`,
      'Join them one after the other: etcd takes one new member at a time',
    );
  const { controlPlane = {}, timeouts = {}, skipPhases = [] } = document;
  const accesses: ApiAccess[] = [];
  const workflowOptions: JoinControlPlaneOptions = {
    ...joinOptions,
    localAPIEndpoint: controlPlane.localAPIEndpoint ?? {},
    timeouts,
    staticPodPatches: node.staticPodPatches,
    kubeProxy: null,
    proxyEnvironment: isThisMachine(targets[0]) ? proxyEnvironment(services.env) : [],
    issuer: await services.certificateIssuer(),
    selects: phaseSelection([...plan.skipPhases, ...skipPhases], onlyPhase),
    routeHere: node.staged ? await routeHere(services) : {},
    caDirectoriesHere: node.staged ? await caDirectoriesHere(services) : [],
    connect: connectOver(services),
    connectEtcd: ({ host, ...target }) => services.connectEtcd({ ...target, from: host }),
    certificateKey: controlPlane.certificateKey ?? null,
    opened: (access) => accesses.push(access),
  };
  try {
    return await runOnHosts(services, {
      ...rest,
      targets,
      plan,
      ...(onlyPhase === undefined ? {} : { onlyPhase }),
      planHost: (context, hostRun) => planWorkflow(joinControlPlaneWorkflow, context, workflowOptions, hostRun),
    });
  } finally {
    for (const access of accesses) await access.close();
  }
}
