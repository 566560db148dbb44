import { type Problem, withHostInErrors } from '../../../base/errors.ts';
import { observe } from '../../../host/access/observe.ts';
import { combineFacts } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import { INSTANCE_CONFIG } from '../../../kube/well-known.ts';
import { criSockets, instanceSocket, runningContainers } from '../../../kubelet/facts/cri-socket.ts';
import { applyResetDefaults } from '../../config/defaults.ts';
import { manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import type { RestartStaticPodInput } from '../../phases/restart-static-pod.ts';
import { readManifest } from '../../upgrade/static-pod-state.ts';
import { UPGRADE_ORDER } from '../../upgrade/upgrade-record.ts';

/** The certificates that a component uses only after a restart, by name. */
const USERS: Readonly<Record<StaticPodName, RegExp>> = {
  etcd: /^etcd-/,
  'kube-apiserver': /^(?:apiserver|front-proxy-client)/,
  'kube-controller-manager': /^controller-manager\.conf$/,
  'kube-scheduler': /^scheduler\.conf$/,
};

export function certificatesOfComponent(component: StaticPodName, renewed: readonly string[]): readonly string[] {
  return renewed.filter((name) => USERS[component].test(name));
}

const NONE: RestartStaticPodInput = { certificates: [], criSocket: '', healthUrls: [] };

/** No component is restarted. */
export const NO_RESTART = (): RestartStaticPodInput => NONE;

const FACTS = combineFacts({ files: fileFacts([INSTANCE_CONFIG, ...UPGRADE_ORDER.map(manifestPath)]), sockets: criSockets(null) });

/**
 * The static Pods that must be restarted to use renewed certificates. A component without a manifest on the host, such as
 * an external etcd, is not restarted.
 * @returns also the problem of a container runtime that cannot be asked for containers
 * @throws AppError CONFIG_SEVERAL_RUNTIMES
 */
export async function restartsOf(
  { host, signal }: PhaseContext,
  renewed: readonly string[],
): Promise<{ readonly of: (component: StaticPodName) => RestartStaticPodInput; readonly problems: readonly Problem[] }> {
  const { files, sockets } = await observe(host, FACTS, signal);
  const textOf = (path: string): string | null => files.get(path)?.content ?? null;
  const users = UPGRADE_ORDER.filter(
    (component) => textOf(manifestPath(component)) !== null && certificatesOfComponent(component, renewed).length > 0,
  );
  const [first] = users;
  if (first === undefined) return { of: NO_RESTART, problems: [] };
  const used = instanceSocket(textOf(INSTANCE_CONFIG) ?? '');
  const { criSocket } = withHostInErrors(host.name, () => applyResetDefaults({}, { criSockets: used === null ? sockets : [used] }));
  if ((await observe(host, runningContainers(criSocket, first), signal)) === null)
    return { of: NO_RESTART, problems: [noClient(criSocket)] };
  const healthUrl = (component: StaticPodName): readonly string[] =>
    [readManifest(textOf(manifestPath(component)) ?? '', component).healthUrl].filter((url) => url !== null);
  return {
    of: (component) =>
      users.includes(component)
        ? {
            certificates: certificatesOfComponent(component, renewed),
            criSocket,
            // The API server answers only while its etcd does.
            healthUrls: [...healthUrl(component), ...(component === 'etcd' ? healthUrl('kube-apiserver') : [])],
          }
        : NONE,
    problems: [],
  };
}

function noClient(criSocket: string): Problem {
  return {
    code: 'CONTAINER_RUNTIME_MUTE',
    message: `neither crictl nor ctr can list the containers of ${criSocket}, so the static Pods cannot be restarted. No certificate was renewed`,
    hint: 'Install crictl on the host (package cri-tools), or omit --restart',
  };
}
