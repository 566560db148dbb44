import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { onAbort } from '../../src/base/abort.ts';
import type { Clock } from '../../src/base/clock.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { clientCertificateKubeconfig, tokenKubeconfig } from '../../src/kube/kubeconfig-render.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { MASTERS_GROUP_NAME } from '../../src/kube/well-known.ts';
import { createAuthenticator } from './authenticate.ts';
import { BOOTSTRAP_OBJECTS } from './bootstrap-objects.ts';
import { startBootstrapSigner } from './controllers/bootstrap-signer.ts';
import { CONTROLLER, type ControllerContext, typeOf } from './controllers/controller.ts';
import { startCsrApprover } from './controllers/csr-approver.ts';
import { startCsrSigner } from './controllers/csr-signer.ts';
import { startDisruption } from './controllers/disruption.ts';
import { startJobRunner } from './controllers/job-runner.ts';
import { startNodeLifecycle } from './controllers/node-lifecycle.ts';
import { startTokenCleaner } from './controllers/token-cleaner.ts';
import { servedKind } from './custom-resources.ts';
import { createFaults, type Faults } from './faults.ts';
import type { HandlerContext } from './handler-context.ts';
import type { FeatureGates } from './kinds/kind.ts';
import { createListener } from './listener.ts';
import type { NodeProxy } from './node-proxy.ts';
import { type CertificateAuthority, createCa, type KeyPair, type Validity } from './pki.ts';
import { createRegistry, type Registry } from './registry.ts';
import { type LoggedRequest, serveRequest } from './serve-request.ts';
import { createStore, type Store } from './store.ts';
import { createWatchStreams } from './watch-streams.ts';

export type ControllerName =
  | 'bootstrap-signer'
  | 'token-cleaner'
  | 'csr-approver'
  | 'csr-signer'
  | 'node-lifecycle'
  | 'job-runner'
  | 'disruption';

export interface ApiServerOptions {
  /** Address to listen on and for kubeconfigs; default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  /** Additional DNS names and addresses of the serving certificate. */
  readonly names?: readonly string[];
  /** Replaces the serving certificate, e.g. by an expired one. */
  readonly serving?: (ca: CertificateAuthority) => Promise<KeyPair>;
  /** Plain HTTP: requests are anonymous or have a token. */
  readonly plainHttp?: boolean;
  readonly ca?: CertificateAuthority;
  /** Default: the system time. TLS certificates always use the system time. */
  readonly clock?: Clock;
  /** Default `v1.36.2`. */
  readonly gitVersion?: string;
  /** Static bearer tokens. */
  readonly tokens?: Readonly<Record<string, { readonly user: string; readonly groups: readonly string[] }>>;
  readonly controllers?: readonly ControllerName[];
  /** Delay of the bootstrap signer; default 0. */
  readonly signerDelayMs?: number;
  readonly gates?: Partial<FeatureGates>;
  /** The objects of an earlier server; default: none. */
  readonly store?: Store;
  /** Number of changes that a watch can resume from. */
  readonly historyLimit?: number;
}

export interface LabApiServer {
  /** For example `https://127.0.0.1:41123`. */
  readonly url: string;
  readonly caPem: string;
  readonly ca: CertificateAuthority;
  /** A kubeconfig for `kubernetes-admin` in `system:masters`, with an embedded certificate. */
  adminKubeconfig(): string;
  /** A kubeconfig with a client certificate for any user. */
  kubeconfigFor(user: string, groups?: readonly string[], validity?: Validity): Promise<string>;
  /** A kubeconfig with a bearer token. */
  kubeconfigWithToken(token: string): string;
  readonly store: Store;
  readonly registry: Registry;
  /** A stored object, or null. */
  get(apiVersion: string, kind: string, name: string, namespace?: string): KubeObject | null;
  /** Creates or replaces objects by the rules of the API, as an admin. Their namespaces must exist. */
  put(...objects: readonly KubeObject[]): void;
  /** Substitutes the kubelet of a node behind `nodes/NAME/proxy`; without it the kubelet is unreachable. */
  proxyNode(name: string, proxy: NodeProxy): void;
  readonly faults: Faults;
  /** The last thousand requests, oldest first. */
  readonly requests: readonly LoggedRequest[];
  /** Number of connections so far. */
  readonly connections: number;
  readonly openWatches: number;
  /** Sends a bookmark to every watch that requested bookmarks. */
  bookmark(): void;
  /** Discards the history: watches from an older resourceVersion get 410. */
  compact(): void;
  /** Closes every connection, including open watches. */
  dropConnections(): void;
  /** Stops and starts again at the same address with the same objects. */
  restart(options?: { readonly whileDown?: () => Promise<void> | void }): Promise<void>;
  close(): Promise<void>;
}

const SYSTEM_CLOCK: Clock = {
  now: () => new Date(),
  sleep: (ms, signal) => sleep(ms, undefined, { ref: false, ...(signal ? { signal } : {}) }),
};

/**
 * Starts a Kubernetes API server in this process: the client-visible behaviour of a real one, with an
 * in-memory store.
 * @throws the listener's error, e.g. EADDRINUSE
 */
export async function startApiServer(options: ApiServerOptions = {}): Promise<LabApiServer> {
  const { host = '127.0.0.1', clock = SYSTEM_CLOCK } = options;
  const ca = options.ca ?? (await createCa());
  const admin = await ca.issueClient({ commonName: 'kubernetes-admin', organizations: [MASTERS_GROUP_NAME] });
  const store = options.store ?? createStore({ historyLimit: options.historyLimit });
  const gates: FeatureGates = { dynamicKubeletConfig: false, ...options.gates };
  const registry = createRegistry({ store, now: clock.now, gates });
  const authenticator = createAuthenticator({ store, now: clock.now, ...(options.tokens ? { tokens: options.tokens } : {}) });
  const stop = new AbortController();
  // Controllers wait with this signal, so the number of listeners is that of their waits, not a leak.
  setMaxListeners(0, stop.signal);
  const put = (...objects: readonly KubeObject[]) => {
    for (const object of objects) putObject(registry, store, object);
  };
  put(...BOOTSTRAP_OBJECTS);
  startControllers({ store, registry, clock, ca, signal: stop.signal }, options);

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
  const tls = options.plainHttp ? null : { serving: await servingCertificate(options, host, ca), clientCaPem: ca.certPem };
  const listener = createListener(tls, (request, response) => {
    void serveRequest({ context, faults, log: requests }, request, response);
  });
  const port = await listener.listen(options.port ?? 0, host);
  const url = () => `${options.plainHttp ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const target = () => ({ clusterName: 'kubernetes', server: url(), caPem: ca.certPem });
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
    caPem: ca.certPem,
    ca,
    adminKubeconfig: () => kubeconfig('kubernetes-admin', admin),
    kubeconfigFor: async (user, organizations = [], validity = {}) =>
      kubeconfig(user, await ca.issueClient({ commonName: user, organizations }, validity)),
    kubeconfigWithToken: (token) => tokenKubeconfig({ ...target(), user: 'token-user', token: new Secret(token) }).reveal(),
    store,
    registry,
    get: (apiVersion, kind, name, namespace = '') => store.get(typeIn(store, apiVersion, kind), namespace, name),
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

function servingCertificate({ serving, names = [] }: ApiServerOptions, host: string, ca: CertificateAuthority): Promise<KeyPair> {
  if (serving) return serving(ca);
  const all = [host, '127.0.0.1', 'localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', ...names];
  return ca.issueServer([...new Set(all)], { commonName: 'kube-apiserver' });
}

function startControllers(context: ControllerContext, { controllers = [], signerDelayMs = 0 }: ApiServerOptions): void {
  const start: { readonly [N in ControllerName]: () => void } = {
    'bootstrap-signer': () => startBootstrapSigner(context, signerDelayMs),
    'token-cleaner': () => startTokenCleaner(context),
    'csr-approver': () => startCsrApprover(context),
    'csr-signer': () => startCsrSigner(context),
    'node-lifecycle': () => startNodeLifecycle(context),
    'job-runner': () => startJobRunner(context),
    disruption: () => void onAbort(context.signal, startDisruption({ store: context.store, now: () => context.clock.now() })),
  };
  for (const name of controllers) start[name]();
}

function typeIn(store: Store, apiVersion: string, kind: string): ResourceType {
  return servedKind(store, apiVersion, kind) ?? typeOf(apiVersion, kind);
}

function putObject(registry: Registry, store: Store, object: KubeObject): void {
  const type = servedKind(store, object.apiVersion, object.kind);
  if (!type) throw new Error(`the API server double has no ${object.kind} in ${object.apiVersion}`);
  const namespace = type.namespaced ? (object.metadata.namespace ?? 'default') : '';
  const at = { namespace, name: object.metadata.name };
  const exists = store.get(type, at.namespace, at.name) !== null;
  if (exists) registry.update(type, at, object, { user: CONTROLLER });
  else registry.create(type, namespace, object, { user: CONTROLLER });
}
