import type { RunTime } from '../../base/clock.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { type DefaultRoute, defaultRoute } from '../../host/facts/default-route.ts';
import type { Fact } from '../../host/facts/fact.ts';
import type { EnvVar } from '../config/model.ts';
import { caDirectoriesOf } from '../facts/control-plane-host.ts';
import type { ClusterConnections, SecretSource } from '../ports.ts';
import type { ConnectControlPlane } from '../workflows/control-plane/api-access.ts';
import type { ConnectEtcd } from '../workflows/control-plane/etcd-access.ts';

export interface LocalHostConnections extends Pick<RunTime, 'signal'> {
  /** Connects to the local host; its target is empty. */
  connectHost(target: Readonly<Record<string, never>>): Promise<Host>;
}

/** Connects from the host when the host is reached over SSH, otherwise from the local host. */
export function controlPlaneConnector({ connectCluster }: Pick<ClusterConnections, 'connectCluster'>): ConnectControlPlane {
  return ({ kubeconfig, server, host }) => connectCluster({ kubeconfig, from: host, server: server ?? undefined });
}

export function etcdConnector({ connectEtcd }: Pick<ClusterConnections, 'connectEtcd'>): ConnectEtcd {
  return ({ host, ...target }) => connectEtcd({ ...target, from: host });
}

/** How the workflows of a control plane reach it, and the settings that they take from the local host. */
export async function controlPlaneInputs(
  services: LocalHostConnections &
    Pick<ClusterConnections, 'connectCluster' | 'connectEtcd'> &
    Pick<SecretSource, 'certificateIssuer'> &
    Pick<LocalFiles, 'env'>,
  { isLocal, staged }: { readonly isLocal: boolean; readonly staged: boolean },
) {
  return {
    proxyEnvironment: isLocal ? proxyEnvironment(services.env) : [],
    issuer: await services.certificateIssuer(),
    localDefaultRoute: staged ? await observeLocalDefaultRoute(services) : {},
    localCaDirectories: staged ? await observeLocalHost(services, caDirectoriesOf()) : [],
    connect: controlPlaneConnector(services),
    connectEtcd: etcdConnector(services),
  };
}

export async function observeLocalDefaultRoute(connections: LocalHostConnections): Promise<DefaultRoute> {
  return observeLocalHost(connections, defaultRoute);
}

async function observeLocalHost<T>({ connectHost, signal }: LocalHostConnections, fact: Fact<T>): Promise<T> {
  const host = await connectHost({});
  try {
    return await observe(host, fact, signal);
  } finally {
    await host.close();
  }
}

/** Proxy environment variables, sorted by name. As in kubeadm, the control plane pods get them. */
export function proxyEnvironment(env: LocalFiles['env']): readonly EnvVar[] {
  return Object.entries(env)
    .flatMap(([name, value]) => (/_proxy$/i.test(name) && value ? [{ name, value }] : []))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

const RELEASES = 'https://dl.k8s.io';

/** Resolves a version label (`stable-1`) at the Kubernetes release server; null when the server does not answer. */
export async function releaseOf(
  { web, signal }: Pick<ClusterConnections, 'web'> & Pick<RunTime, 'signal'>,
  label: string,
  ci: boolean,
): Promise<string | null> {
  let url = `${RELEASES}/${ci ? 'ci' : 'release'}/${label}.txt`;
  for (let hops = 0; hops < 3; hops++) {
    const answer = await web.get({ url, trust: { kind: 'machine' }, timeoutMs: 10_000, maxBytes: 1024, signal });
    if (answer.kind === 'failed') return null;
    if (answer.status === 200) return answer.text.trim();
    if (answer.location === null || !answer.location.startsWith('https://')) return null;
    url = answer.location;
  }
  return null;
}
