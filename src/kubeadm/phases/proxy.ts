import { AppError, isAppError } from '../../base/errors.ts';
import type { Secret } from '../../base/text/secret.ts';
import type { Templates } from '../../codec/render-template.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import {
  observeRemovedProxy,
  type ProxyFacts,
  planProxy,
  planProxyRemoval,
  proxyFacts,
  type RemovedProxyFacts,
} from '../../host/install/proxy.ts';
import type { ProxySetting, SecretSource } from '../../host/operation/install-model.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { HostChange } from '../../host/plan/change.ts';
import { revertChanges } from '../../host/plan/revert.ts';
import { parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import { FLAGS_ENV, KUBELET_CONF } from '../../kube/well-known.ts';
import { observeHealthzUrl } from '../../kubelet/effective/healthz-url.ts';
import { clientIdentity } from '../../kubelet/facts/kubelet-identity.ts';
import { isHealthy, kubeletHealth } from '../../kubelet/health/observe.ts';
import { prepareRestartVerification } from '../../kubelet/health/verify-change.ts';
import { waitForHealthyKubelet, waitForStartedKubelet } from '../../kubelet/health/wait-healthy.ts';
import { apiServerHost } from '../config/proxy-exceptions.ts';
import { nodeNameOf } from '../node-identity/node-name-of.ts';
import { NODE_SETTINGS_PATH } from '../node-settings/node-settings.ts';

export interface ProxyInput {
  readonly templates: Templates;
  readonly proxy: ProxySetting;
  /** Subnets, domains and the API endpoint of the cluster. */
  readonly clusterExceptions: readonly string[];
  /** URL of the API server at which new hosts join; null: the host creates the cluster. */
  readonly joinServer: string | null;
  /** @returns `user:password`, encoded for a URL. @throws AppError USAGE if the credentials do not exist */
  readonly readCredentials: (source: SecretSource) => Promise<Secret>;
}

interface Situation extends ProxyFacts {
  /** DNS name or IP address of the API server in the kubeconfig of the kubelet; null: the host has none. */
  readonly apiServer: string | null;
  readonly credentials: Secret | null;
  /** Of the running kubelet; null: it has no healthz endpoint. */
  readonly healthzUrl: string | null;
  readonly isHealthy: boolean;
}

const NAME = 'proxy';
const HEALTHY_MS = 240_000;

/** Gives the container runtime and the kubelet the declared proxy. */
export const configureProxy = definePhase<ProxyInput, Situation>({
  name: NAME,
  short: 'Configure the proxy of the container runtime and the kubelet',
  observe: observeProxy,
  plan: (situation, { proxy, clusterExceptions, joinServer, templates }) => {
    const { credentials } = situation;
    const apiServer = situation.apiServer ?? (joinServer === null ? null : apiServerHost(joinServer));
    return planProxy(situation, { proxy, clusterExceptions, apiServer, templates, credentials });
  },
  verify: async (context, _, { healthzUrl, isHealthy: wasHealthy }, applied) =>
    wasHealthy && restartsKubelet(applied) ? waitForStartedKubelet(context, NAME, { url: healthzUrl, timeoutMs: HEALTHY_MS }) : undefined,
  undo: (situation, applied) => (situation.isHealthy && restartsKubelet(applied) ? undoProxy(applied) : null),
  verifyUndone: (context, _, { healthzUrl }) => waitForHealthyKubelet(context, NAME, { url: healthzUrl, timeoutMs: HEALTHY_MS }),
  commit: {
    paths: [],
    // The kubelet is healthy without an API server: only the Node shows that NO_PROXY contains its address.
    prepare: async (context, _, __, changes) => {
      if (!restartsKubelet(changes)) return async () => undefined;
      const nodeName = await observeNodeName(context);
      return nodeName === null ? async () => NAME_UNKNOWN : prepareRestartVerification(context, { nodeName }, NAME);
    },
  },
});

const NAME_UNKNOWN = 'it is unknown whether the kubelet reaches the API server: the name of its Node is unknown; see kubectl get nodes';

const NODE_NAME = combineFacts({ identity: clientIdentity, files: fileFacts([NODE_SETTINGS_PATH, FLAGS_ENV]), os: operatingSystem });

/** Null: the host has no hostname. */
async function observeNodeName({ host, signal }: PhaseContext): Promise<string | null> {
  const { identity, files, os } = await observe(host, NODE_NAME, signal);
  const text = (path: string): string => files.get(path)?.content ?? '';
  return nodeNameOf({ identity, nodeSettings: text(NODE_SETTINGS_PATH), flagsEnv: text(FLAGS_ENV), hostname: os.hostname });
}

/** The API server that the kubelet uses. */
const kubeletServer = defineFact({ conf: { kind: 'file', path: KUBELET_CONF } }, ({ conf }, parseText): string | null =>
  conf?.content === undefined ? null : parseText(conf.content, serverIn),
);

function serverIn(kubeconfig: string): string | null {
  try {
    return apiServerHost(resolveContext(parseKubeconfig(kubeconfig, KUBELET_CONF)).cluster.server);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

const FACTS = combineFacts({ proxy: proxyFacts, apiServer: kubeletServer });

async function observeProxy(context: PhaseContext, { proxy, readCredentials }: ProxyInput): Promise<Situation> {
  const { host, signal } = context;
  const { apiServer, proxy: facts } = await observe(host, FACTS, signal);
  if (facts.init !== 'systemd') {
    const message = 'proxy: the host does not run systemd, so the proxy of the fleet file cannot be configured';
    const hint = 'Remove the field proxy of this host from the fleet file, and configure the proxy with the service manager of the host';
    throw new AppError({ host: host.name, code: 'SYSTEMD_MISSING', message, hint }, { exitCode: 3 });
  }
  if (proxy !== 'none' && 'why' in facts.networks) {
    const message = `proxy: cannot determine the subnet of the host for NO_PROXY: ${facts.networks.why}`;
    const hint = 'Install iproute2 on the host, then rerun the command';
    throw new AppError({ host: host.name, code: 'HOST_SUBNET_UNKNOWN', message, hint }, { exitCode: 3 });
  }
  const credentials = proxy === 'none' || proxy.credentials === null ? null : await readCredentials(proxy.credentials);
  const healthzUrl = facts.units.kubelet?.activeState === 'active' ? await observeHealthzUrl(context) : null;
  const health = await observe(host, kubeletHealth(healthzUrl), signal);
  return { ...facts, apiServer, credentials, healthzUrl, isHealthy: isHealthy(health) };
}

function restartsKubelet(changes: readonly { readonly kind: string; readonly unit?: unknown }[]): boolean {
  return changes.some(({ kind, unit }) => kind === 'restart-unit' && unit === 'kubelet');
}

function undoProxy(applied: readonly HostChange[]): readonly HostChange[] | null {
  const files = revertChanges(applied);
  if (files.length === 0) return null;
  const again = applied.filter(({ kind }) => kind === 'daemon-reload' || kind === 'restart-unit');
  return [...files, ...again.map((change) => ({ ...change, reason: 'rolling back to the previous configuration' }))];
}

/** Removes the proxy that `apply` configured. Its file may contain credentials. A proxy of the image is kept. */
export const removeProxy = definePhase<null, RemovedProxyFacts | null>({
  name: 'proxy',
  short: 'Remove the HTTP proxy settings that a fleet file configured',
  observe: ({ host, signal }) => observeRemovedProxy(host, signal),
  plan: planProxyRemoval,
});
