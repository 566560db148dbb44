import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../src/kubelet/defaults/effective-configuration.ts';
import { type CertificateChain, createCertificateChain } from '../support/certificate-chain.ts';
import { clusterApiManifests } from '../support/cluster-api-manifests.ts';
import {
  canUpdateMachineSet,
  definition,
  definitions,
  HOOKS_API_VERSION,
  kubeadmConfig,
  kubeadmConfigSpec,
  machine,
  patchFile,
  UPDATE_IN_PROGRESS,
  updateMachine,
} from '../support/cluster-api-objects.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { builtProgram } from '../support/run-bundle.ts';
import { createAgentNode, reportTrials } from '../support/stand-in-reports.ts';
import { untilTrue } from '../support/until-true.ts';

const TITLE = 'the Cluster API extension on a real kube-apiserver';
const binaries = findRealBinaries();
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
const ACCOUNT = 'kubeletadm-cluster-api';

describe.skipIf(requirement(TITLE, typeof binaries === 'string' ? binaries : null))(TITLE, () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-cluster-api-'));
  const path = (name: string): string => join(directory, name);
  let server: RealApiServer;
  let cluster: Cluster;
  let chain: CertificateChain;
  let extension: ChildProcess;
  let output = '';
  let port = 0;
  const stop: (() => Promise<unknown>)[] = [];

  const kubectl = (argv: readonly string[], input = '') => {
    const ran = spawnSync(join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubectl'), ['--kubeconfig', path('admin.conf'), ...argv], {
      input,
      encoding: 'utf8',
    });
    expect(`${ran.status} ${ran.stderr}`).toMatch(/^0 /);
    return ran.stdout;
  };

  beforeAll(async () => {
    if (typeof binaries === 'string') throw new Error(binaries);
    server = await startRealApiServer(binaries);
    stop.unshift(() => server.close());
    cluster = kubeCluster({ kubeconfig: { text: server.adminKubeconfig(), file: 'admin.conf' } });
    stop.unshift(() => cluster.close());
    writeFileSync(path('admin.conf'), server.adminKubeconfig());
    const others = [
      definition('cert-manager.io', 'Issuer', ['v1']),
      definition('cert-manager.io', 'Certificate', ['v1']),
      definition('runtime.cluster.x-k8s.io', 'ExtensionConfig', ['v1beta2'], 'Cluster'),
    ];
    for (const object of [...definitions(), ...others]) await cluster.create(object);
    await untilTrue(() =>
      cluster.list({ apiVersion: 'runtime.cluster.x-k8s.io/v1beta2', kind: 'ExtensionConfig' }).then(Boolean, () => false),
    );
    kubectl(['apply', '-k', 'deploy/cluster-api']);
    await createAgentNode(cluster, 'n1');
    await serveConfigz(cluster, stop);
    chain = await createCertificateChain();
    writeFileSync(path('tls.crt'), chain.certPem + chain.intermediatePem);
    writeFileSync(path('tls.key'), chain.keyPem);
    writeFileSync(path('account.conf'), server.kubeconfigWithToken(kubectl(['create', 'token', ACCOUNT, '-n', ACCOUNT]).trim()));
    const files = ['--tls-cert-file', path('tls.crt'), '--tls-private-key-file', path('tls.key'), '--kubeconfig', path('account.conf')];
    extension = spawn(process.execPath, [builtProgram(), 'controller', 'cluster-api', '--port', '0', ...files]);
    for (const stream of [extension.stdout, extension.stderr]) stream?.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
    await untilTrue(() => /on port \d+$/m.test(output) || extension.exitCode !== null);
    port = Number(/on port (\d+)$/m.exec(output)?.[1]);
  }, 120_000);
  afterAll(async () => {
    extension?.kill('SIGTERM');
    for (const end of stop) await end();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  function post(hook: string, body: JsonObject): Promise<JsonObject> {
    return new Promise((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: `/${HOOKS_API_VERSION}/${hook}`,
        ca: chain.rootPem + chain.intermediatePem,
      };
      const sent = request(options, (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
        response.on('end', () =>
          response.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(`${response.statusCode} ${text}`)),
        );
      });
      sent.on('error', reject);
      sent.end(JSON.stringify(body));
    });
  }

  it('has manifests that the API server and the Pod Security Standard restricted accept', () => {
    const [deployment] = clusterApiManifests().filter(({ kind }) => kind === 'Deployment') as (KubeObject & {
      spec: { template: KubeObject };
    })[];
    const { metadata, ...template } = deployment?.spec.template ?? {};
    const pod = { apiVersion: 'v1', kind: 'Pod', ...template, metadata: { ...metadata, name: 'pod', namespace: ACCOUNT } };
    kubectl(['create', '--dry-run=server', '-f', '-'], JSON.stringify(pod));
    const rights = [
      'get machines.cluster.x-k8s.io',
      'get kubeadmconfigs.bootstrap.cluster.x-k8s.io',
      'get secrets',
      'list secrets',
      'patch nodes',
      'get nodes',
    ];
    const may = rights.map((right) => {
      const as = `system:serviceaccount:${ACCOUNT}:${ACCOUNT}`;
      return spawnSync(
        join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubectl'),
        ['--kubeconfig', path('admin.conf'), 'auth', 'can-i', '--as', as, '-n', 'x', ...right.split(' ')],
        { encoding: 'utf8' },
      ).stdout.trim();
    });
    expect(may).toEqual(['yes', 'yes', 'yes', 'no', 'no', 'no']);
  });

  it('updates the Node of a Machine with the rights of its manifests, and nothing of a request that is not stored', async () => {
    const [old, spec] = ['maxPods: 110\n', 'maxPods: 120\n'].map((content) => kubeadmConfigSpec([patchFile(content)])) as [
      JsonObject,
      JsonObject,
    ];
    expect(await post('canupdatemachineset/can-update-machine-set', canUpdateMachineSet(old, spec))).toMatchObject({
      status: 'Success',
      bootstrapConfigTemplatePatch: { patchType: 'JSONPatch' },
    });
    const stored = machine();
    const objects: KubeObject[] = [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fleet' } },
      {
        ...stored,
        metadata: { ...stored.metadata, annotations: { [UPDATE_IN_PROGRESS]: '' } },
        status: { nodeRef: { name: 'n1' } },
      },
      kubeadmConfig(spec),
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'edge-kubeconfig', namespace: 'fleet' },
        data: { value: Buffer.from(server.adminKubeconfig()).toString('base64') },
      },
    ];
    for (const object of objects) await cluster.create(object);
    const update = (requested = spec) => post('updatemachine/update-machine', updateMachine(requested));
    expect(await update(kubeadmConfigSpec([patchFile('maxPods: 130\n')]))).toMatchObject({
      status: 'Failure',
      message: expect.stringContaining('differs'),
    });
    expect(await update()).toMatchObject({ status: 'Success', retryAfterSeconds: 10 });
    const agents = new AbortController();
    const reporting = reportTrials(cluster, agents.signal, { arePassed: true });
    try {
      await untilTrue(async () => (await update()).retryAfterSeconds === 0);
    } finally {
      agents.abort();
      await reporting;
    }
    const { message } = await update();
    expect(message).toMatch(/^Node n1 with kubeletadm-system\/cluster-api-\w{10}\/kubelet: updated$/);
    const name = /cluster-api-\w+/.exec(String(message))?.[0] ?? '';
    const map = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system', name });
    expect([map?.immutable, JSON.stringify(map?.data)]).toEqual([true, expect.stringContaining('maxPods')]);
    expect(output).not.toMatch(/PRIVATE KEY|client-key/);
  }, 60_000);
});

/** In place of the kubelet of the Node: its configuration, as the API server reads it through its proxy. */
async function serveConfigz(cluster: Cluster, stop: (() => Promise<unknown>)[]): Promise<void> {
  const kubeletconfig = effectiveConfiguration({ maxPods: 110 }, { catalogue: await loadCatalogue(), minor: 36 });
  const { certPem, keyPem } = await createCertificateChain();
  const kubelet = createServer({ cert: certPem, key: keyPem }, ({ url }, response) =>
    url === '/configz' ? response.end(JSON.stringify({ kubeletconfig })) : response.writeHead(404).end(),
  );
  await new Promise<void>((resolve) => kubelet.listen(0, () => resolve()));
  stop.unshift(
    () => new Promise((resolve) => kubelet.close(resolve)),
    async () => kubelet.closeAllConnections(),
  );
  // The API server refuses to connect to a loopback address.
  const address = Object.values(networkInterfaces()).flatMap((found = []) =>
    found.filter(({ internal, family }) => !internal && family === 'IPv4'),
  )[0]?.address;
  const { port: Port } = kubelet.address() as AddressInfo;
  const status = { addresses: [{ type: 'InternalIP', address: address ?? '' }], daemonEndpoints: { kubeletEndpoint: { Port } } };
  await cluster.patch(NODE, 'strategic', { status }, { subresource: 'status' });
}
