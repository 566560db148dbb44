import { isAppError } from '../../../base/errors.ts';
import type { SensitiveText } from '../../../base/text/secret.ts';
import { listeningPorts } from '../../../host/facts/listening-ports.ts';
import type { Host } from '../../../host/host.ts';
import { observe } from '../../../host/observe.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { HostKubeconfig } from '../../../kube/host-kubeconfig.ts';
import { isAdministrator } from '../../../kube/may-do.ts';
import { readHostKubeconfig } from '../../read-host-kubeconfig.ts';

/** Connects to the API server of a control plane, over the network of its host. */
export type ConnectControlPlane = (options: {
  readonly kubeconfig: HostKubeconfig;
  /** `https://ADDRESS:PORT` of this control plane, whatever the kubeconfig says; null: as it says. */
  readonly server: string | null;
  readonly host: Host;
}) => Promise<Cluster>;

export interface ApiAccessOptions {
  readonly connect: ConnectControlPlane;
  /** The local API endpoint; null: the one in the kubeconfig, whose port is not on this host. */
  readonly local: { readonly server: string; readonly port: number } | null;
  /** A kubeconfig of the host, as it is or will be; null: there is none. */
  readonly kubeconfig: () => { readonly path: string; readonly text: SensitiveText } | null;
}

/** The way to the API server of a control plane that may not be there yet. */
export interface ApiAccess {
  /** Null while nothing listens on its port or nobody can log in. Connected once. */
  reach(context: PhaseContext): Promise<Cluster | null>;
  close(): Promise<void>;
}

/** No way: nobody is to be asked. */
export const NO_ACCESS: ApiAccess = { reach: async () => null, close: async () => undefined };

/**
 * Makes the access. Where nothing listens on the host's port no connection is tried: over SSH that would take long to fail.
 * @throws (reach) what `readHostKubeconfig` throws, and `Cluster.version` besides CLUSTER_UNREACHABLE and CLUSTER_FORBIDDEN
 */
export function apiAccess({ connect, local, kubeconfig }: ApiAccessOptions): ApiAccess {
  let connected: Cluster | null = null;
  return {
    reach: async (context) => {
      if (connected !== null) return connected;
      const found = kubeconfig();
      if (found === null) return null;
      if (local !== null && (await observe(context.host, listeningPorts, context.signal))?.has(local.port) !== true) return null;
      const ofHost = await readHostKubeconfig(context.host, { ...found, hint: adminConfHint(found.path), signal: context.signal });
      const cluster = await connect({ kubeconfig: ofHost, server: local?.server ?? null, host: context.host });
      try {
        await cluster.version();
      } catch (error) {
        // Whoever has no role yet may not even ask that.
        if (!isAppError(error, 'CLUSTER_FORBIDDEN')) {
          await cluster.close();
          if (isAppError(error, 'CLUSTER_UNREACHABLE')) return null;
          throw error;
        }
      }
      connected = cluster;
      return cluster;
    },
    close: async () => {
      await connected?.close();
      connected = null;
    },
  };
}

/** How to fix an administrator's kubeconfig of a control plane that is refused. */
export function adminConfHint(path: string): string {
  const name = path.replace(/^.*\/|\.conf$/g, '');
  return `Correct the file, or delete it and make it again: kubeletadm init phase kubeconfig ${name}`;
}

/**
 * The way of an administrator, and another one until the API server knows him for one: a run that was broken off before that can be planned.
 * @param admin may log in, and may do nothing yet
 */
export function onceAdministrator(admin: ApiAccess, meanwhile: ApiAccess): ApiAccess {
  let known = false;
  return {
    reach: async (context) => {
      const cluster = await admin.reach(context);
      known ||= cluster !== null && (await isAdministrator(cluster));
      return known ? cluster : meanwhile.reach(context);
    },
    close: async () => {
      await Promise.all([admin.close(), meanwhile.close()]);
    },
  };
}
