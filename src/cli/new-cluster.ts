import { isAppError } from '../base/errors.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import type { HostTarget } from '../fleet/host-target.ts';
import type { KubeconfigFile } from '../fleet/use-cases/admin-kubeconfig.ts';
import type { ConnectionRequest, HostsRequest } from '../fleet/use-cases/host-access.ts';
import type { JoinCommands } from '../fleet/use-cases/open-init.ts';
import type { Output, Services } from './output/services.ts';
import type { OutputRequest } from './output/show-document.ts';
import { renamingOutput } from './program-name.ts';

/** How the user of this host runs the program for other hosts. */
interface RemoteUse {
  /** The words that start the program: `kubeletadm`, `npx tsx src/bin.ts`. */
  readonly prefix: string;
  /** The control plane as the user named it. */
  readonly host: string;
  /** The SSH options of the command line, without passwords: `--ssh-config FILE`. */
  readonly ssh: readonly string[];
}

/** Null: the command changed the local host. */
export async function remoteUse(services: Services, { addresses, connection }: HostsRequest): Promise<RemoteUse | null> {
  const [host] = addresses;
  if (host === undefined) return null;
  return { prefix: (await services.commandPrefix?.()) ?? services.programName, host, ssh: sshWords(connection) };
}

/** An output whose command lines run as this user starts the program, and the options that repeat the connection to the hosts. */
export async function nextCommands(
  services: Services,
  hosts: HostsRequest,
): Promise<{ readonly output: Output; readonly ssh: readonly string[] }> {
  const remote = await remoteUse(services, hosts);
  return remote === null
    ? { output: services.output, ssh: [] }
    : { output: renamingOutput(services.output, remote.prefix), ssh: remote.ssh };
}

/** The options that repeat a connection. The sources of passwords are named, not their values. */
function sshWords(connection: ConnectionRequest): readonly string[] {
  const { configFile, identityFiles, knownHostsFile, acceptNewHostKeys, password, sudoPassword, transport, become } = connection;
  const given: readonly (readonly [boolean, ...string[]])[] = [
    [configFile !== undefined, '--ssh-config', configFile ?? ''],
    ...identityFiles.map((file) => [true, '--ssh-identity', file] as const),
    [knownHostsFile !== undefined, '--ssh-known-hosts', knownHostsFile ?? ''],
    [acceptNewHostKeys === true, '--ssh-accept-new'],
    [transport === 'openssh', '--ssh-transport', 'openssh'],
    [become === 'sudo' || become === 'none', '--become', become ?? ''],
    [password === 'terminal', '--ask-pass'],
    [password === 'stdin', '--ssh-password-stdin'],
    [sudoPassword === 'terminal', '--ask-become-pass'],
    [sudoPassword === 'stdin', '--sudo-password-stdin'],
  ];
  return given.flatMap(([isGiven, ...words]) => (isGiven ? words.map(quoteShell) : []));
}

/** Time limit for the Nodes of a new cluster to become Ready. */
const READY_MS = 10_000;

/**
 * Observes the Nodes of a new cluster, and writes its kubeconfig if a file is given.
 * @returns the Nodes, as a clause; the failure of the file, null: none
 */
export async function visitNewCluster(
  services: Services,
  target: HostTarget,
  file: KubeconfigFile | null,
): Promise<{ readonly nodes: string; readonly failure: unknown }> {
  const [{ asAdministrator, writeAdminKubeconfig }, { nodesText, observeNodes }] = await Promise.all([
    import('../fleet/use-cases/admin-kubeconfig.ts'),
    import('../fleet/use-cases/observe-nodes.ts'),
  ]);
  const reporter = services.reporter({ verbosity: 0, format: 'text' });
  const notObserved = (error: unknown): string => {
    if (!isAppError(error)) throw error;
    return `not observed: ${error.problems[0]?.message}`;
  };
  try {
    return await asAdministrator(services, target, async ({ kubeconfig, cluster }) => ({
      failure:
        file === null
          ? null
          : await writeAdminKubeconfig(services, kubeconfig, file, reporter).then(
              () => null,
              (error: unknown) => error,
            ),
      nodes: await observeNodes(services, cluster, READY_MS).then(nodesText, notObserved),
    }));
  } catch (error) {
    return { nodes: notObserved(error), failure: file === null ? null : error };
  }
}

/** Prints the commands on standard output, except for documents, which must stay parseable. @param remote null: for the hosts themselves */
export function printJoinCommands(
  { output }: Pick<Services, 'output'>,
  commands: JoinCommands,
  { format }: OutputRequest,
  remote: RemoteUse | null = null,
): void {
  if (format !== 'text') {
    output.stderr('To print a join command, run: kubeletadm token create --print-join-command\n');
    return;
  }
  const shown = (command: string): string =>
    remote === null
      ? command.trimEnd()
      : [command.trimEnd().replace(/^kubeletadm/, remote.prefix), '--host NEW-HOST', ...remote.ssh].join(' ');
  const lines = (kind: 'worker' | 'control-plane'): readonly string[] =>
    [...commands].flatMap(([command, joins]) => (joins === kind ? [`  ${shown(command)}\n`] : []));
  const [workers, controlPlanes] = [lines('worker'), lines('control-plane')];
  if (controlPlanes.length > 0) output.stdout(`\nJoin other control planes with:\n\n${controlPlanes.join('')}`);
  const others = controlPlanes.length > 0 ? 'workers' : 'other nodes';
  if (workers.length > 0) output.stdout(`\nJoin ${others} with:\n\n${workers.join('')}\n`);
}

/**
 * How to use a new cluster, printed at the end of `init` as kubeadm does: its Nodes, the kubeconfig, and the pod network
 * without which no Node is Ready.
 * @param nodes the observed Nodes, as a clause
 * @param remote null: the local host
 * @param kubeconfig the written kubeconfig of the administrator; null: none was written
 */
export function firstSteps({
  nodes,
  remote,
  kubeconfig,
}: {
  readonly nodes: string;
  readonly remote: RemoteUse | null;
  readonly kubeconfig: string | null;
}): string {
  return `
The control plane is running${remote === null ? '' : ` on ${remote.host}`}. Nodes: ${nodes}.

${kubeconfig !== null ? usingFile(kubeconfig) : remote === null ? LOCAL_USE : fetching(remote)}
Then install a pod network (https://kubernetes.io/docs/concepts/cluster-administration/addons/):

  kubectl apply -f PODNETWORK.yaml
`;
}

const LOCAL_USE = `To use the cluster as a regular user, run:

  mkdir -p $HOME/.kube
  sudo cp -i /etc/kubernetes/admin.conf $HOME/.kube/config
  sudo chown $(id -u):$(id -g) $HOME/.kube/config

or, as root:

  export KUBECONFIG=/etc/kubernetes/admin.conf
`;

function usingFile(path: string): string {
  return `To use the cluster, run:

  export KUBECONFIG=${quoteShell(path)}
`;
}

function fetching({ prefix, host, ssh }: RemoteUse): string {
  const words = [prefix, 'kubeconfig admin --host', quoteShell(host), ...ssh, '--kubeconfig-out admin.conf'];
  return `To use the cluster from this host, fetch the kubeconfig of the administrator:

  ${words.join(' ')}
  export KUBECONFIG=$PWD/admin.conf
`;
}
