import { goDurationMs } from '../../base/text/go-duration.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { isSinglePhase, type RunSettings } from '../../host/run-settings.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import { DEFAULT_CRI_SOCKET } from '../../kubelet/facts/cri-socket.ts';
import { DEFAULT_TIMEOUTS, withScheme } from '../config/defaults.ts';
import type { NodeRegistration, Timeouts } from '../config/model.ts';
import { bindClusterAdmins, type ClusterAdminsInput } from '../phases/cluster-admins.ts';
import { kubeletWaitBootstrap, type WaitBootstrapInput } from '../phases/kubelet-wait-bootstrap.ts';
import { type WaitControlPlaneInput, waitControlPlane } from '../phases/wait-control-plane.ts';
import {
  type ApiAccess,
  type ApiServerBootstrapInput,
  type ApiServerRouteOptions,
  apiServerRoutes,
  deferUntilApiServer,
} from './control-plane/api-access.ts';
import { observeControlPlaneHost } from './upgrade/control-plane-host.ts';

interface WaitOnHostOptions {
  readonly nodeRegistration: NodeRegistration;
  readonly timeouts: Timeouts;
}

interface WaitOnHostInput {
  readonly wait: WaitControlPlaneInput;
  readonly bootstrap: WaitBootstrapInput;
}

export const WAIT_PHASES: readonly string[] = ['wait-control-plane', 'kubelet-wait-bootstrap'];

/** Whether a single phase only waits: it reads files of the host, and needs neither a configuration nor discovery. */
export function onlyWaits(run: RunSettings): boolean {
  return isSinglePhase(run, WAIT_PHASES);
}

/** A phase of `join` that waits, run alone. */
export const joinWaitWorkflow: Workflow<WaitOnHostOptions, WaitOnHostInput> = {
  name: 'join',
  phases: [
    kubeletWaitBootstrap.select((input: WaitOnHostInput) => input.bootstrap),
    waitControlPlane.select((input: WaitOnHostInput) => input.wait),
  ],
  prepare: async (_, options) => ({ input: inputOf(options), warnings: [], refusals: [] }),
};

interface InitWaitInput extends WaitOnHostInput, ApiServerBootstrapInput {
  readonly superApi: ApiAccess;
  readonly admins: ClusterAdminsInput;
}

/** The phase wait-control-plane of `init`, run alone. As in kubeadm, it binds the user of admin.conf as well. */
export const initWaitWorkflow: Workflow<WaitOnHostOptions & ApiServerRouteOptions, InitWaitInput> = {
  name: 'init',
  phases: [
    waitControlPlane.select((input: InitWaitInput) => input.wait),
    deferUntilApiServer(
      bindClusterAdmins,
      (input: InitWaitInput) => input.admins,
      ({ superApi }) => superApi,
    ),
  ],
  prepare: prepareInitWait,
};

/** @throws AppError CONTROL_PLANE_MISSING, exit code 3, without the manifest of an API server */
async function prepareInitWait(
  context: PhaseContext,
  options: WaitOnHostOptions & ApiServerRouteOptions,
): Promise<Prepared<InitWaitInput>> {
  const { endpoint } = await observeControlPlaneHost(context);
  const { api, superApi, reachAsAdmin } = await apiServerRoutes(context, options, endpoint);
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const admins = { reachAsAdmin, timeoutMs: goDurationMs(timeouts.kubernetesAPICall) };
  return {
    input: { ...inputOf(options), api, superApi, admins, assumeEmptyCluster: false, staged: false },
    warnings: [],
    refusals: [],
  };
}

function inputOf({ nodeRegistration, timeouts }: WaitOnHostOptions): WaitOnHostInput {
  const { controlPlaneComponentHealthCheck, tlsBootstrap } = { ...DEFAULT_TIMEOUTS, ...timeouts };
  const { criSocket, name = '' } = nodeRegistration;
  return {
    wait: {
      isRequired: true,
      criSocket: criSocket === undefined ? DEFAULT_CRI_SOCKET : withScheme(criSocket),
      timeoutMs: goDurationMs(controlPlaneComponentHealthCheck),
    },
    bootstrap: { nodeName: name, timeoutMs: goDurationMs(tlsBootstrap) },
  };
}
