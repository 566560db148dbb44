import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/base/json.ts';
import { encodeYaml } from '../../src/codec/yaml-encode.ts';
import { parseKubeconfig, resolveContext } from '../../src/kube/kubeconfig.ts';
import {
  BOOTSTRAP_CONF,
  FLAGS_ENV,
  KUBELET_CLIENT_PEM,
  KUBELET_CONF,
  KUBELET_SERVER_PEM,
  NODES_GROUP_NAME,
} from '../../src/kube/well-known.ts';
import { itemsOf, memberOf, textOf } from '../api-server/members.ts';
import { createCertificateRequest } from '../api-server/pki.ts';
import { type ApiAnswer, type ApiClientHost, type ApiRequest, queryApiServer } from './api-client.ts';
import { runKubeletPods } from './kubelet-pods.ts';
import { nodeResources, pressuresOf } from './stand-in-admission.ts';

export interface StandInKubeletOptions extends ApiClientHost {
  readonly hostname: string;
  readonly address: string;
  /** For example `v1.36.2`. */
  readonly version: string;
  readonly log: (level: 'I' | 'E', text: string) => void;
}

const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const RETRY_MS = 100;
const HEARTBEAT_MS = 10_000;
/** The real kubelet reports again when its runtime is ready, soon after its first report. */
const SECOND_REPORT_MS = 1_000;

/**
 * The part of a lab host's kubelet that uses the API server: TLS bootstrap, its Node, its serving certificate,
 * and the pods of its node.
 */
export class StandInKubelet {
  readonly #options: StandInKubeletOptions;
  #running: AbortController | null = null;
  /** The real kubelet reads it once, at startup. */
  #machineId = '';

  constructor(options: StandInKubeletOptions) {
    this.#options = options;
  }

  /**
   * Starts like a new kubelet process, and retries until it is stopped.
   * @param config with the kubelet's defaults and with absolute paths
   */
  start(config: JsonObject): void {
    this.stop();
    const running = new AbortController();
    this.#running = running;
    if (config.rotateCertificates === true) this.#storeGivenCertificate();
    this.#machineId = existsSync(this.#at('/etc/machine-id')) ? this.#read('/etc/machine-id').trim() : '';
    void this.#run(running.signal, config).catch(() => {});
  }

  stop(): void {
    this.#running?.abort();
    this.#running = null;
  }

  /**
   * Whether the credentials in kubelet.conf are usable. Otherwise the real kubelet needs its bootstrap
   * kubeconfig.
   */
  hasIdentity(): boolean {
    try {
      const { user } = resolveContext(parseKubeconfig(this.#read(KUBELET_CONF), KUBELET_CONF));
      if (user?.certData === undefined && user?.certFile === undefined) return user?.token !== undefined;
      const pem = user.certData === undefined ? this.#read(user.certFile ?? '') : Buffer.from(user.certData, 'base64').toString('utf8');
      return Date.parse(new X509Certificate(pem).validTo) > Date.now();
    } catch {
      return false;
    }
  }

  /** A certificate that kubelet.conf embeds is stored as the first one of the rotation. */
  #storeGivenCertificate(): void {
    if (!existsSync(this.#at(KUBELET_CONF)) || existsSync(this.#at(KUBELET_CLIENT_PEM))) return;
    const { user } = resolveContext(parseKubeconfig(this.#read(KUBELET_CONF), KUBELET_CONF));
    if (user?.certData === undefined || user.keyData === undefined) return;
    const decode = (data: string): string => Buffer.from(data, 'base64').toString('utf8');
    this.#write(KUBELET_CLIENT_PEM, decode(user.certData) + decode(user.keyData.reveal()));
  }

  async #run(signal: AbortSignal, config: JsonObject): Promise<void> {
    await this.#untilDone(signal, async () => this.hasIdentity() || (await this.#bootstrap(signal)));
    await this.#untilDone(signal, () => this.#register(config));
    void this.#keepReporting(signal, config).catch(() => {});
    const { rootDir, network, address } = this.#options;
    void runKubeletPods({ rootDir, network, nodeName: this.#nodeName(), address, config, signal }).catch(() => {});
    if (config.serverTLSBootstrap === true && !existsSync(this.#at(KUBELET_SERVER_PEM)))
      await this.#untilDone(signal, () => this.#askServingCertificate(signal));
  }

  async #untilDone(signal: AbortSignal, work: () => Promise<boolean>): Promise<void> {
    for (; !signal.aborted; await sleep(RETRY_MS, undefined, { signal, ref: false })) {
      const done = await work().catch((error: Error) => {
        if (!signal.aborted) this.#options.log('E', `"Unhandled Error" err=${JSON.stringify(error.message)}`);
        return false;
      });
      if (done) return;
    }
  }

  /** kubelet.conf is written before the certificate exists, as by the real kubelet. */
  async #bootstrap(signal: AbortSignal): Promise<boolean> {
    const { cluster } = resolveContext(parseKubeconfig(this.#read(BOOTSTRAP_CONF), BOOTSTRAP_CONF));
    const user = { 'client-certificate': KUBELET_CLIENT_PEM, 'client-key': KUBELET_CLIENT_PEM };
    const entry = { ...(cluster.caData === undefined ? {} : { 'certificate-authority-data': cluster.caData }), server: cluster.server };
    const kubeconfig = {
      apiVersion: 'v1',
      clusters: [{ cluster: entry, name: 'default-cluster' }],
      contexts: [{ context: { cluster: 'default-cluster', namespace: 'default', user: 'default-auth' }, name: 'default-context' }],
      'current-context': 'default-context',
      kind: 'Config',
      users: [{ name: 'default-auth', user }],
    };
    this.#write(KUBELET_CONF, encodeYaml(kubeconfig));
    const subject = { commonName: `system:node:${this.#nodeName()}`, organizations: [NODES_GROUP_NAME] };
    const { requestPem, keyPem } = await createCertificateRequest(subject);
    const certificate = await this.#requestCertificate(signal, BOOTSTRAP_CONF, {
      generateName: 'node-csr-',
      requestPem,
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
    });
    if (certificate === null) return false;
    this.#write(KUBELET_CLIENT_PEM, certificate + keyPem);
    return true;
  }

  async #askServingCertificate(signal: AbortSignal): Promise<boolean> {
    const subject = { commonName: `system:node:${this.#nodeName()}`, organizations: [NODES_GROUP_NAME] };
    const { hostname, address } = this.#options;
    const { requestPem, keyPem } = await createCertificateRequest(subject, [hostname, address]);
    const certificate = await this.#requestCertificate(signal, KUBELET_CONF, {
      generateName: 'csr-',
      requestPem,
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
    });
    if (certificate === null) return false;
    this.#write(KUBELET_SERVER_PEM, certificate + keyPem);
    return true;
  }

  /** The certificate as PEM; null when it was denied or failed. */
  async #requestCertificate(
    signal: AbortSignal,
    conf: string,
    {
      generateName,
      requestPem,
      ...spec
    }: {
      readonly generateName: string;
      readonly requestPem: string;
      readonly signerName: string;
      readonly usages: readonly string[];
    },
  ): Promise<string | null> {
    const body = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName },
      spec: { ...spec, request: Buffer.from(requestPem, 'utf8').toString('base64') },
    };
    const created = await this.#ask(conf, { method: 'POST', path: CSRS, body }).catch((error: Error) => {
      const why = `cannot create certificate signing request: ${error.message}`;
      this.#options.log('E', `"Failed while requesting a signed certificate from the control plane" err=${JSON.stringify(why)}`);
      throw error;
    });
    const name = textOf(memberOf(created, 'metadata'), 'name');
    for (;;) {
      const status = memberOf(await this.#ask(conf, { method: 'GET', path: `${CSRS}/${name}` }), 'status');
      const certificate = textOf(status, 'certificate');
      if (certificate !== '') return Buffer.from(certificate, 'base64').toString('utf8');
      if (itemsOf(status, 'conditions').some(({ type }) => type === 'Denied' || type === 'Failed')) return null;
      await sleep(RETRY_MS / 4, undefined, { signal, ref: false });
    }
  }

  /** Registers its Node, or updates the existing one to Ready. Conditions of other reporters stay. */
  async #register(config: JsonObject): Promise<boolean> {
    const name = this.#nodeName();
    const path = `/api/v1/nodes/${name}`;
    const found = await queryApiServer(this.#options, KUBELET_CONF, { method: 'GET', path });
    if (found.status === 404) {
      const labels = { 'kubernetes.io/hostname': this.#options.hostname, 'kubernetes.io/os': 'linux', ...this.#labels() };
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } };
      await this.#ask(KUBELET_CONF, { method: 'POST', path: '/api/v1/nodes', body: node });
    } else if (found.status >= 400) throw new Error(String(found.body.message ?? found.status));
    const conditions = itemsOf(memberOf(found.body, 'status'), 'conditions');
    const body = { status: this.#status(config, conditions) };
    await this.#ask(KUBELET_CONF, { method: 'PATCH', path: `${path}/status`, body, patch: 'strategic-merge' });
    await this.#renewLease(name);
    return true;
  }

  async #renewLease(name: string): Promise<void> {
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, namespace: 'kube-node-lease' },
      spec: { holderIdentity: name, leaseDurationSeconds: (4 * HEARTBEAT_MS) / 1_000, renewTime },
    };
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    const { status } = await queryApiServer(this.#options, KUBELET_CONF, { method: 'PATCH', path: `${path}/${name}`, body: lease });
    if (status === 404) await this.#ask(KUBELET_CONF, { method: 'POST', path, body: lease });
  }

  /** Sends heartbeats. */
  async #keepReporting(signal: AbortSignal, config: JsonObject): Promise<void> {
    for (let pauseMs = SECOND_REPORT_MS; ; pauseMs = HEARTBEAT_MS) {
      await sleep(pauseMs, undefined, { signal, ref: false });
      await this.#register(config).catch(() => false);
    }
  }

  /** @param before the conditions of the Node: the transition time of an unchanged one stays */
  #status(config: JsonObject, before: readonly JsonObject[]): JsonObject {
    const { address, hostname, version } = this.#options;
    const machineID = this.#machineId;
    const now = new Date().toISOString().replace(/\.\d+/, '');
    const timesOf = (type: string, status: string): JsonObject => {
      const same = before.find((one) => one.type === type && one.status === status);
      return { lastHeartbeatTime: now, lastTransitionTime: same?.lastTransitionTime ?? now };
    };
    const pressures = pressuresOf(config).map(({ type }) => type);
    const { capacity, allocatable } = nodeResources(config);
    return {
      capacity,
      allocatable,
      addresses: [
        { type: 'InternalIP', address },
        { type: 'Hostname', address: hostname },
      ],
      conditions: [
        pressures.includes('MemoryPressure')
          ? {
              type: 'MemoryPressure',
              status: 'True',
              reason: 'KubeletHasInsufficientMemory',
              message: 'kubelet has insufficient memory available',
            }
          : {
              type: 'MemoryPressure',
              status: 'False',
              reason: 'KubeletHasSufficientMemory',
              message: 'kubelet has sufficient memory available',
            },
        pressures.includes('DiskPressure')
          ? { type: 'DiskPressure', status: 'True', reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' }
          : { type: 'DiskPressure', status: 'False', reason: 'KubeletHasNoDiskPressure', message: 'kubelet has no disk pressure' },
        { type: 'PIDPressure', status: 'False', reason: 'KubeletHasSufficientPID', message: 'kubelet has sufficient PID available' },
        { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' },
      ].map((condition) => ({ ...condition, ...timesOf(condition.type, condition.status) })),
      nodeInfo: {
        machineID,
        systemUUID: machineID,
        bootID: '',
        kernelVersion: '6.12.0-lab',
        osImage: 'Lab Linux 1',
        containerRuntimeVersion: 'containerd://2.1.0',
        kubeletVersion: version,
        kubeProxyVersion: '',
        operatingSystem: 'linux',
        architecture: 'amd64',
      },
    };
  }

  async #ask(conf: string, asked: ApiRequest): Promise<JsonObject> {
    const { status, body }: ApiAnswer = await queryApiServer(this.#options, conf, asked);
    if (status >= 400) throw new Error(String(body.message ?? status));
    return body;
  }

  #nodeName(): string {
    return this.#flag('hostname-override') ?? this.#options.hostname;
  }

  #labels(): Readonly<Record<string, string>> {
    const pairs = (this.#flag('node-labels') ?? '').split(',').filter(Boolean);
    return Object.fromEntries(pairs.map((pair) => pair.split('=', 2) as [string, string]));
  }

  #flag(name: string): string | undefined {
    const flags = existsSync(this.#at(FLAGS_ENV)) ? this.#read(FLAGS_ENV) : '';
    return new RegExp(`--${name}=([^\\s"]+)`).exec(flags)?.[1];
  }

  #at(path: string): string {
    return join(this.#options.rootDir, path);
  }

  #read(path: string): string {
    return readFileSync(this.#at(path), 'utf8');
  }

  #write(path: string, text: string): void {
    mkdirSync(dirname(this.#at(path)), { recursive: true });
    writeFileSync(this.#at(path), text, { mode: 0o600 });
  }
}
