import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';
import { Secret } from '../../base/text/secret.ts';
import { clientCertificateKubeconfig, tokenKubeconfig } from '../../kube/kubeconfig-render.ts';
import type { KubeObject } from '../../kube/object.ts';
import { resourceOf } from '../../kube/resources.ts';
import { MASTERS_GROUP_NAME } from '../../kube/well-known.ts';
import { createAuthenticator } from './authenticate.ts';
import { BOOTSTRAP_OBJECTS } from './bootstrap-objects.ts';
import { startBootstrapSigner } from './controllers/bootstrap-signer.ts';
import { CONTROLLER, type ControllerContext, typeOf } from './controllers/controller.ts';
import { startCsrApprover } from './controllers/csr-approver.ts';
import { startCsrSigner } from './controllers/csr-signer.ts';
import { startNodeTaints } from './controllers/node-taints.ts';
import { startTokenCleaner } from './controllers/token-cleaner.ts';
import { createFaults, type Faults } from './faults.ts';
import type { HandlerContext } from './handler-context.ts';
import type { FeatureGates } from './kinds/kind.ts';
import { createListener } from './listener.ts';
import type { NodeProxy } from './node-proxy.ts';
import { type CertificateAuthority, createAuthority, type KeyPair, type Validity } from './pki.ts';
import { createRegistry, type Registry } from './registry.ts';
import { type LoggedRequest, serveRequest } from './serve-request.ts';
import { createStore, type Store } from './store.ts';
import { createWatchStreams } from './watch-streams.ts';

export type ControllerName = 'bootstrap-signer' | 'token-cleaner' | 'csr-approver' | 'csr-signer' | 'node-taints';

export interface ApiServerOptions {
  /** Address to listen on and to write into kubeconfigs; default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free one. */
  readonly port?: number;
  /** More DNS names and addresses for the serving certificate. */
  readonly names?: readonly string[];
  /** Replaces the serving certificate, e.g. by one that has expired. */
  readonly serving?: (authority: CertificateAuthority) => Promise<KeyPair>;
  /** Plain HTTP: everybody is anonymous or has a token. */
  readonly plainHttp?: boolean;
  readonly authority?: CertificateAuthority;
  /** Default: the machine's time. Certificates for TLS always go by the machine's time. */
  readonly clock?: Clock;
  /** Default `v1.36.2`. */
  readonly gitVersion?: string;
  /** Bearer tokens that are simply known. */
  readonly tokens?: Readonly<Record<string, { readonly user: string; readonly groups: readonly string[] }>>;
  readonly controllers?: readonly ControllerName[];
  /** How long the bootstrap signer takes to come round; default 0. */
  readonly signerDelayMs?: number;
  readonly gates?: Partial<FeatureGates>;
  /** How many changes a watch can go back. */
  readonly historyLimit?: number;
}

export interface ApiServer {
  /** e.g. `https://127.0.0.1:41123`. */
  readonly url: string;
  readonly caPem: string;
  readonly authority: CertificateAuthority;
  /** A kubeconfig for `kubernetes-admin` in `system:masters`, with its certificate inside. */
  adminKubeconfig(): string;
  /** A kubeconfig with a client certificate for any user. */
  kubeconfigFor(user: string, groups?: readonly string[], validity?: Validity): Promise<string>;
  /** A kubeconfig with a bearer token. */
  kubeconfigWithToken(token: string): string;
  readonly store: Store;
  readonly registry: Registry;
  /** An object as it is stored, or null. */
  get(apiVersion: string, kind: string, name: string, namespace?: string): KubeObject | null;
  /** Creates or replaces objects by the rules of the API, as an admin. Namespaces have to exist. */
  put(...objects: readonly KubeObject[]): void;
  /** What stands in for the kubelet of a node behind `nodes/NAME/proxy`; without one the kubelet does not answer. */
  proxyNode(name: string, proxy: NodeProxy): void;
  readonly faults: Faults;
  /** The last thousand requests, oldest first. */
  readonly requests: readonly LoggedRequest[];
  /** How many connections were made so far. */
  readonly connections: number;
  readonly openWatches: number;
  /** Sends a bookmark to every watch that wants them. */
  bookmark(): void;
  /** Forgets the history: watches from an older version get 410. */
  compact(): void;
  /** Cuts every connection, open watches too. */
  dropConnections(): void;
  /** Stops answering and starts again at the same address with the same objects. */
  restart(options?: { readonly whileDown?: () => Promise<void> | void }): Promise<void>;
  close(): Promise<void>;
}

const SYSTEM_CLOCK: Clock = {
  now: () => new Date(),
  sleep: (ms, signal) => sleep(ms, undefined, { ref: false, ...(signal ? { signal } : {}) }),
};

/**
 * Starts a Kubernetes API server in this process: what clients see of a real one, over a small store in memory.
 * @throws the listener's error, e.g. EADDRINUSE
 */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const { host = '127.0.0.1', clock = SYSTEM_CLOCK } = options;
  const authority = options.authority ?? (await createAuthority());
  const admin = await authority.issueClient({ commonName: 'kubernetes-admin', organizations: [MASTERS_GROUP_NAME] });
  const store = createStore({ ...(options.historyLimit === undefined ? {} : { historyLimit: options.historyLimit }) });
  const gates: FeatureGates = { dynamicKubeletConfig: false, ...options.gates };
  const registry = createRegistry({ store, now: clock.now, gates });
  const authenticator = createAuthenticator({ store, now: clock.now, ...(options.tokens ? { tokens: options.tokens } : {}) });
  const stop = new AbortController();
  const put = (...objects: readonly KubeObject[]) => {
    for (const object of objects) putObject(registry, store, object);
  };
  put(...BOOTSTRAP_OBJECTS);
  startControllers({ store, registry, clock, authority, signal: stop.signal }, options);

  const faults = createFaults();
  const requests: LoggedRequest[] = [];
  const streams = createWatchStreams(store, clock);
  const nodeProxies = new Map<string, NodeProxy>();
  const context: HandlerContext = {
    store,
    registry,
    authenticator,
    clock,
    gitVersion: options.gitVersion ?? 'v1.36.2',
    address: () => new URL(url()).host,
    watches: streams,
    nodeProxies,
  };
  const tls = options.plainHttp ? null : { serving: await servingCertificate(options, host, authority), clientCaPem: authority.certPem };
  const listener = createListener(tls, (request, response) => {
    void serveRequest({ context, faults, log: requests }, request, response);
  });
  const port = await listener.listen(options.port ?? 0, host);
  const url = () => `${options.plainHttp ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const target = () => ({ clusterName: 'kubernetes', server: url(), caPem: authority.certPem });
  const kubeconfig = (user: string, { certPem, keyPem }: KeyPair) =>
    clientCertificateKubeconfig({ ...target(), user, certificatePem: certPem, keyPem: new Secret(keyPem) }).reveal();
  const down = async () => {
    streams.endAll();
    await listener.close();
  };
  return {
    get url() {
      return url();
    },
    caPem: authority.certPem,
    authority,
    adminKubeconfig: () => kubeconfig('kubernetes-admin', admin),
    kubeconfigFor: async (user, organizations = [], validity = {}) =>
      kubeconfig(user, await authority.issueClient({ commonName: user, organizations }, validity)),
    kubeconfigWithToken: (token) => tokenKubeconfig({ ...target(), user: 'token-user', token: new Secret(token) }).reveal(),
    store,
    registry,
    get: (apiVersion, kind, name, namespace = '') => store.get(typeOf(apiVersion, kind), namespace, name),
    put,
    proxyNode: (name, proxy) => void nodeProxies.set(name, proxy),
    faults,
    requests,
    get connections() {
      return listener.accepted();
    },
    get openWatches() {
      return streams.count();
    },
    bookmark: streams.bookmarkAll,
    compact: store.compact,
    dropConnections: listener.dropConnections,
    restart: async ({ whileDown } = {}) => {
      await down();
      await whileDown?.();
      await listener.listen(port, host);
    },
    close: async () => {
      stop.abort();
      await down();
    },
  };
}

function servingCertificate({ serving, names = [] }: ApiServerOptions, host: string, authority: CertificateAuthority): Promise<KeyPair> {
  if (serving) return serving(authority);
  const all = [host, '127.0.0.1', 'localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', ...names];
  return authority.issueServer([...new Set(all)], { commonName: 'kube-apiserver' });
}

function startControllers(context: ControllerContext, { controllers = [], signerDelayMs = 0 }: ApiServerOptions): void {
  const start: { readonly [N in ControllerName]: () => void } = {
    'bootstrap-signer': () => startBootstrapSigner(context, signerDelayMs),
    'token-cleaner': () => startTokenCleaner(context),
    'csr-approver': () => startCsrApprover(context),
    'csr-signer': () => startCsrSigner(context),
    'node-taints': () => startNodeTaints(context),
  };
  for (const name of controllers) start[name]();
}

function putObject(registry: Registry, store: Store, object: KubeObject): void {
  const type = resourceOf(object.apiVersion, object.kind);
  if (!type) throw new Error(`the API server double has no ${object.kind} in ${object.apiVersion}`);
  const namespace = type.namespaced ? (object.metadata.namespace ?? 'default') : '';
  const at = { namespace, name: object.metadata.name };
  const exists = store.get(type, at.namespace, at.name) !== null;
  if (exists) registry.update(type, at, object, { user: CONTROLLER });
  else registry.create(type, namespace, object, { user: CONTROLLER });
}
