import { randomUUID, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { JsonObject } from '../../src/base/json.ts';
import { readYaml } from '../../src/kube/same-yaml.ts';
import { commandOf, flagValue } from '../../src/kubeadm/control-plane/component-endpoints.ts';
import { readEtcdManifest } from '../../src/kubeadm/control-plane/etcd-manifest.ts';
import { imageTag } from '../../src/kubeadm/control-plane/images.ts';
import type { StaticPodName } from '../../src/kubeadm/control-plane/paths.ts';
import { readManifest } from '../../src/kubeadm/upgrade/static-pod-state.ts';
import { loadCa } from '../api-server/pki.ts';
import { type LabApiServer, startApiServer } from '../api-server/server.ts';
import { createStore, type Store } from '../api-server/store.ts';
import { startStandInEtcd } from './stand-in-etcd.ts';

export interface StandInControlPlaneOptions {
  readonly rootDir: string;
  /** The loopback address at which the processes of the host listen. */
  readonly loopback: string;
  /** Called with each API server that starts. */
  readonly started: (api: LabApiServer) => void;
  readonly log: (level: 'I' | 'E', text: string) => void;
}

interface RunningComponent {
  /** The id of its container. */
  readonly id: string;
  readonly manifest: string;
  /** The ports on which it listens. */
  readonly ports: readonly number[];
  readonly close: () => Promise<void>;
}

const COMPONENTS: readonly StaticPodName[] = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
/** Of Kubernetes: they run in the API server of the lab. */
const CONTROLLERS = [
  'bootstrap-signer',
  'token-cleaner',
  'csr-approver',
  'csr-signer',
  'node-lifecycle',
  'job-runner',
  'disruption',
] as const;
const NO_LISTENERS = '  sl  local_address rem_address   st\n';

/**
 * The processes of the static pods of a control plane on a lab host: an API server with the certificates and the version
 * of its manifest, which needs etcd. Their ports appear in /proc/net/tcp of the host.
 */
export class StandInControlPlane {
  readonly #options: StandInControlPlaneOptions;
  readonly #running = new Map<StaticPodName, RunningComponent>();
  /** The objects in an etcd data directory, by the id in it: a copy of the directory has the same objects. */
  readonly #stores = new Map<string, Store>();
  /** Why components do not start. */
  readonly #failures = new Map<string, string>();
  #syncing: Promise<void> = Promise.resolve();
  /** The kubelet's staticPodPath of the last `sync`. */
  #directory: string | null = null;
  #version = '';

  constructor(options: StandInControlPlaneOptions) {
    this.#options = options;
  }

  /**
   * Starts and stops processes until those of the manifests run. Calls wait for each other.
   * @param directory the kubelet's staticPodPath on the host; null: the kubelet is stopped
   */
  sync(directory: string | null): Promise<void> {
    this.#syncing = this.#syncing.then(() => this.#sync(directory));
    return this.#syncing;
  }

  /** The components that run. */
  get components(): readonly StaticPodName[] {
    return [...this.#running.keys()];
  }

  /** The id of the container of a component that runs; null: it does not run. */
  containerOf(name: string): string | null {
    return [...this.#running].find(([component]) => component === name)?.[1].id ?? null;
  }

  /** Stops a container; the kubelet starts a new one. */
  restart(id: string): Promise<void> {
    this.#syncing = this.#syncing.then(async () => {
      const [name, component] = [...this.#running].find(([, one]) => one.id === id) ?? [];
      if (name === undefined) return;
      await component?.close();
      this.#running.delete(name);
      await this.#sync(this.#directory);
    });
    return this.#syncing;
  }

  /** The last line in the log of a component that does not start; null: it runs, or has no manifest. */
  failureOf(name: string): string | null {
    return this.#failures.get(name) ?? null;
  }

  /** Answers a GET of a health endpoint or of /version; null: nothing listens on the port. */
  answer(url: URL): string | null {
    const port = Number(url.port);
    if (![...this.#running.values()].some(({ ports }) => ports.includes(port))) return null;
    return url.pathname === '/version' ? JSON.stringify({ gitVersion: this.#version }) : 'ok';
  }

  async #sync(directory: string | null): Promise<void> {
    this.#directory = directory;
    const manifests = new Map(
      COMPONENTS.flatMap((name) => {
        const text = directory === null ? null : this.#read(join(directory, `${name}.yaml`));
        return text === null ? [] : [[name, text] as const];
      }),
    );
    this.#failures.clear();
    const before = [...this.#running.values()];
    const isCurrent = (name: StaticPodName): boolean => this.#running.get(name)?.manifest === manifests.get(name);
    for (const name of COMPONENTS.toReversed()) {
      if (isCurrent(name) && (name !== 'kube-apiserver' || isCurrent('etcd'))) continue;
      await this.#running.get(name)?.close();
      this.#running.delete(name);
    }
    for (const [name, text] of manifests) if (!this.#running.has(name)) await this.#start(name, text);
    if (before.length > 0 || this.#running.size > 0) this.#showPorts();
  }

  /** Logs why a component does not start; the next change of a file tries again. */
  async #start(name: StaticPodName, manifest: string): Promise<void> {
    try {
      const { ports, close } = await this.#process(name, manifest);
      const { healthUrl } = readManifest(manifest, name);
      const health = healthUrl === null ? [] : [Number(new URL(healthUrl).port)];
      this.#running.set(name, { id: randomUUID().slice(0, 13), manifest, ports: [...ports, ...health], close });
    } catch (error) {
      this.#failures.set(name, String(error));
      this.#options.log('E', `"Error syncing pod" pod="kube-system/${name}" err=${JSON.stringify(String(error))}`);
    }
  }

  async #process(name: StaticPodName, manifest: string): Promise<Omit<RunningComponent, 'id' | 'manifest'>> {
    const { loopback: host, started } = this.#options;
    const words = commandOf((readYaml(manifest) ?? {}) as JsonObject, name);
    const fileOf = (flag: string): string => this.#require(flagValue(words, flag) ?? '');
    if (name === 'etcd') {
      this.#store(manifest);
      const [port, peer] = [2379, 2380];
      return { ports: [port, peer], ...(await startStandInEtcd(words, { host, port, read: (path) => this.#require(path) })) };
    }
    if (name !== 'kube-apiserver') return { ports: [], close: async () => undefined };
    const etcd = this.#running.get('etcd');
    if (etcd === undefined) throw new Error('etcd does not answer');
    const caFile = flagValue(words, 'client-ca-file') ?? '';
    const serving = { certPem: fileOf('tls-cert-file'), keyPem: fileOf('tls-private-key-file') };
    const port = Number(flagValue(words, 'secure-port') ?? 6443);
    // Otherwise kubeconfigs and join commands name an address that may be another machine for the local host.
    if (new X509Certificate(serving.certPem).checkIP(host) === undefined)
      throw new Error(`the lab requires init --control-plane-endpoint ${host}:${port}`);
    this.#version = imageTag(readManifest(manifest, name).image ?? '');
    const api = await startApiServer({
      ...{ host, port, gitVersion: this.#version, controllers: CONTROLLERS, store: this.#store(etcd.manifest) },
      ca: await loadCa({ certPem: this.#require(caFile), keyPem: this.#require(caFile.replace(/\.crt$/, '.key')) }),
      serving: async () => serving,
    });
    started(api);
    return { ports: [port], close: () => api.close() };
  }

  /** The objects of an etcd data directory; a directory without data gets a new cluster. */
  #store(manifest: string): Store {
    const path = join(readEtcdManifest(manifest).dataDir, 'member/snap/db');
    const id = this.#read(path) ?? randomUUID();
    const file = join(this.#options.rootDir, path);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, id);
    const store = this.#stores.get(id) ?? createStore();
    this.#stores.set(id, store);
    return store;
  }

  #showPorts(): void {
    const ports = new Set([...this.#running.values()].flatMap((component) => component.ports));
    const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');
    const lines = [...ports].map((port, i) => `   ${i}: 00000000:${hex(port)} 00000000:0000 0A 00000000:00000000\n`);
    writeFileSync(join(this.#options.rootDir, 'proc/net/tcp'), NO_LISTENERS + lines.join(''));
  }

  #read(path: string): string | null {
    const file = join(this.#options.rootDir, path);
    return existsSync(file) ? readFileSync(file, 'utf8') : null;
  }

  #require(path: string): string {
    const text = this.#read(path);
    if (text === null) throw new Error(`open ${path}: no such file or directory`);
    return text;
  }
}
