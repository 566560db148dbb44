import { type Problem, withHostInErrors } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import { criSockets } from '../../kubelet/facts/cri-socket.ts';
import { applyNodeDefaults, withScheme } from '../config/defaults.ts';
import { type PullImagesInput, pullImages } from '../phases/pull-images.ts';

interface PullImagesOptions {
  readonly images: readonly string[];
  /** Undefined: detected on the host. */
  readonly criSocket: string | undefined;
}

/** Pulls the control plane images of a host, those that exist as well. kubeadm 1.36: config images pull. */
export const pullImagesWorkflow: Workflow<PullImagesOptions, PullImagesInput> = {
  name: 'config images pull',
  phases: [pullImages],
  prepare,
};

/** @throws AppError CONFIG_SEVERAL_RUNTIMES */
async function prepare({ host, signal }: PhaseContext, { images, criSocket }: PullImagesOptions): Promise<Prepared<PullImagesInput>> {
  const sockets = await observe(host, criSockets(criSocket === undefined ? null : withScheme(criSocket)), signal);
  const registration = withHostInErrors(host.name, () =>
    applyNodeDefaults({ name: 'any', ...(criSocket === undefined ? {} : { criSocket }) }, { hostname: 'any', criSockets: sockets }),
  );
  return {
    input: { images, criSocket: registration.criSocket, policy: 'Always', isRequired: true },
    warnings: [],
    refusals: sockets.includes(registration.criSocket) ? [] : [noRuntime(host.name, registration.criSocket)],
  };
}

/** The same message as in preflight. */
function noRuntime(host: string, criSocket: string): Problem {
  const hint = 'Start the container runtime, or pass its socket with --cri-socket';
  return { host, code: 'CRI', message: `no container runtime listens on ${criSocket}`, hint };
}
