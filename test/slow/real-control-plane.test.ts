import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { revealText } from '../../src/base/text/secret.ts';
import { applyPhases, planPhases } from '../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../src/host/phase.ts';
import type { DesiredFile } from '../../src/host/plan/diff-file.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { corednsObjects } from '../../src/kubeadm/addons/coredns.ts';
import { kubeProxyObjects } from '../../src/kubeadm/addons/kube-proxy.ts';
import { CONTROL_PLANE_TAINT } from '../../src/kubeadm/config/defaults.ts';
import { manifestFile } from '../../src/kubeadm/control-plane/manifests.ts';
import type { ControlPlaneNode } from '../../src/kubeadm/control-plane/model.ts';
import { addonCoredns, addonKubeProxy } from '../../src/kubeadm/phases/addons.ts';
import { markControlPlane } from '../../src/kubeadm/phases/mark-control-plane.ts';
import { preparePki } from '../../src/kubeadm/workflows/certificates/prepare-pki.ts';
import { controlPlaneNode } from '../support/control-plane-node.ts';
import { pkiContext, pkiOptions } from '../support/control-plane-pki.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { fakeHost } from '../support/fake-host.ts';
import { asKnownTo } from '../support/old-etcd.ts';
import { type OwnMachine, type OwnProcess, startOwnMachine, whyNoOwnMachine } from '../support/own-machine.ts';
import { findRealBinaries, whyNoControlPlane } from '../support/real-apiserver.ts';
import { recordingReporter } from '../support/recording-reporter.ts';
import { requirement } from '../support/requirement.ts';

const CONFIG = `
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.168.56.10}
nodeRegistration: {name: cp-1}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
networking: {podSubnet: 10.244.0.0/16}
`;

const binaries = findRealBinaries();
const missing = whyNoControlPlane() ?? whyNoOwnMachine();
const COMPONENTS = ['etcd', 'kube-apiserver', 'kube-controller-manager'] as const;

interface Container {
  readonly command: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly [probe: `${string}Probe`]: Probe | undefined;
}
interface Probe {
  readonly httpGet: { readonly host: string; readonly path: string; readonly port: string; readonly scheme: string };
  readonly failureThreshold: number;
  readonly periodSeconds: number;
}

/** Real etcd, kube-apiserver and kube-controller-manager, started from the manifests. */
describe.skipIf(requirement('static pods with real components', missing))('static pods with real components', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-pods-'));
  const processes = new Map<string, OwnProcess>();
  let node: ControlPlaneNode;
  let machine: OwnMachine;
  let known: (text: string) => string;
  let cluster: Cluster;

  beforeAll(async () => {
    if (typeof binaries === 'string' || binaries.controllerManager === null) return;
    node = controlPlaneNode(CONFIG);
    const pki = await preparePki(pkiContext(undefined, fakeClock(new Date())), pkiOptions(node));
    put([...pki.certificates.values(), ...pki.kubeconfigs.values()].flatMap(({ files }) => files));
    put(COMPONENTS.map((name) => manifestFile(node, name)));
    mkdirSync(join(directory, 'var/lib/etcd'), { recursive: true, mode: 0o700 });
    const { etcd, apiserver, controllerManager } = binaries;
    machine = await startOwnMachine(directory, node.localAPIEndpoint.advertiseAddress, [etcd, apiserver, controllerManager]);
    cluster = kubeCluster({ kubeconfig: { path: join(directory, 'etc/kubernetes/super-admin.conf') }, dial: machine.dial });
    known = asKnownTo(etcd);
    for (const name of COMPONENTS) processes.set(name, machine.start(containerOf(name).command.map(known)));
  }, 60_000);
  afterAll(async () => {
    await cluster?.close();
    await machine?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  function put(files: readonly DesiredFile[]): void {
    for (const { path, content, mode } of files) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), revealText(content), { mode });
    }
  }

  /** The manifest as parsed from the file on disk. */
  function containerOf(name: string): Container {
    return parse(readFileSync(join(directory, 'etc/kubernetes/manifests', `${name}.yaml`), 'utf8')).spec.containers[0] as Container;
  }

  it.each(COMPONENTS)('%s starts with the flags of its manifest, and all its probes succeed', { timeout: 90_000 }, async (name) => {
    const { ports, ...container } = containerOf(name);
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'] as const) {
      const found = container[probe];
      if (found === undefined) continue;
      const { host, path, port, scheme } = found.httpGet;
      const target = { host, port: ports.find((each) => each.name === port)?.containerPort ?? 0 };
      const query = async () => {
        if (!processes.get(name)?.alive()) throw new Error(`${name} ended:\n${processes.get(name)?.output()}`);
        return get(await machine.dial(target), { scheme, host, path: name === 'etcd' ? known(path) : path });
      };
      await expect.poll(query, { timeout: 60_000, interval: 200, message: `${probe} ${path}` }).toBe(200);
    }
  });

  it("form a cluster that accepts kubeadm's addons and marks, once", { timeout: 60_000 }, async () => {
    await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'cp-1' } });
    const context: PhaseContext = { host: fakeHost(), cluster, clock: fakeClock(new Date()), reporter: recordingReporter() };
    const common = { forceUpload: false };
    const inputs = [
      [markControlPlane, { nodeName: 'cp-1', taints: [CONTROL_PLANE_TAINT], timeoutMs: 10_000 }],
      [addonCoredns, { objects: corednsObjects(node), ...common }],
      [addonKubeProxy, { ...kubeProxyObjects(node), ...common }],
    ] as const;
    for (const [phase, input] of inputs) {
      await applyPhases([phase as never], context, input as never, []);
      const [again] = await planPhases([phase as never], context, input as never);
      expect(again?.plan.changes, phase.name).toEqual([]);
      expect(again?.plan.noop, phase.name).toBeDefined();
    }
  });

  it("allocate addresses of the pod network, according to the controller manager's flags", { timeout: 60_000 }, async () => {
    const podCidr = async () =>
      ((await cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'cp-1' }))?.spec as { podCIDR?: string })?.podCIDR;
    await expect.poll(podCidr, { timeout: 50_000, interval: 200 }).toMatch(/^10\.244\.\d+\.0\/24$/);
  });
});

/**
 * The status of a GET over an open connection, without certificate verification, like a kubelet. 0: no
 * answer.
 */
async function get(
  stream: NodeJS.ReadWriteStream,
  { scheme, host, path }: { scheme: string; host: string; path: string },
): Promise<number> {
  const socket = scheme === 'HTTPS' ? connect({ socket: stream as never, rejectUnauthorized: false }) : stream;
  return new Promise((resolve) => {
    const asked = request({ host, path, createConnection: () => socket as never }, (response) => {
      response.resume();
      response.once('close', () => stream.end());
      resolve(response.statusCode ?? 0);
    });
    asked.once('error', () => resolve(0));
    asked.end();
  });
}
