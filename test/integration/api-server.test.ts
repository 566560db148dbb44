import { execFile, execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ApiServerOptions, type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { signDetached } from '../../src/kubeadm/token/jws.ts';
import { NODE_CSR } from '../contract/api-server-requests.ts';
import { within } from '../support/within.ts';

const opened: LabApiServer[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
});

async function start(options: ApiServerOptions = {}): Promise<LabApiServer> {
  const server = await startApiServer(options);
  opened.push(server);
  return server;
}

const clusterOf = (text: string) => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });
const tokenSecret = (id: string, data: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
  type: 'bootstrap.kubernetes.io/token',
  stringData: {
    'token-id': id,
    'token-secret': '0123456789abcdef',
    'usage-bootstrap-signing': 'true',
    'usage-bootstrap-authentication': 'true',
    ...data,
  },
});
const clusterInfo = (kubeconfig: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'cluster-info', namespace: 'kube-public' },
  data: { kubeconfig },
});
const binding = (name: string, role: string, group: string): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
});

/** A clock that tests advance; advancing it runs the timers that are due. */
function handClock(start: string): Clock & { move(ms: number): void } {
  let now = Date.parse(start);
  const sleepers = new Set<{ at: number; wake: () => void }>();
  return {
    now: () => new Date(now),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { at: now + ms, wake: resolve };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper);
          reject(signal.reason);
        });
      }),
    move: (ms) => {
      now += ms;
      for (const sleeper of [...sleepers].filter(({ at }) => at <= now)) {
        sleepers.delete(sleeper);
        sleeper.wake();
      }
    },
  };
}

const signaturesOf = (server: LabApiServer) => {
  const { kubeconfig: _, ...signatures } = (server.get('v1', 'ConfigMap', 'cluster-info', 'kube-public')?.data ?? {}) as Record<
    string,
    string
  >;
  return signatures;
};

describe('bootstrap token signer', () => {
  const sign = (id: string, text: string) => signDetached(id, new Secret('0123456789abcdef'), text);

  it('keeps one signature per token that may sign', async () => {
    const server = await start({ controllers: ['bootstrap-signer'] });
    server.put(tokenSecret('aaaaaa'), tokenSecret('bbbbbb', { 'usage-bootstrap-signing': 'false' }), clusterInfo('one'));
    expect(signaturesOf(server)).toEqual({ 'jws-kubeconfig-aaaaaa': sign('aaaaaa', 'one') });
    server.put(tokenSecret('cccccc'));
    server.put(clusterInfo('two'));
    expect(signaturesOf(server)).toEqual({
      'jws-kubeconfig-aaaaaa': sign('aaaaaa', 'two'),
      'jws-kubeconfig-cccccc': sign('cccccc', 'two'),
    });
    const gone = { apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system', name: 'bootstrap-token-aaaaaa' };
    await clusterOf(server.adminKubeconfig()).delete(gone);
    expect(Object.keys(signaturesOf(server))).toEqual(['jws-kubeconfig-cccccc']);
  });

  it('with a signing delay: keeps the previous signature until the delay has passed', async () => {
    const clock = handClock('2030-01-01T00:00:00Z');
    const server = await start({ controllers: ['bootstrap-signer'], signerDelayMs: 1000, clock });
    server.put(tokenSecret('aaaaaa'), clusterInfo('one'));
    expect(signaturesOf(server)).toEqual({});
    clock.move(1000);
    await expect.poll(() => signaturesOf(server)).toEqual({ 'jws-kubeconfig-aaaaaa': sign('aaaaaa', 'one') });
    server.put({ ...clusterInfo('two'), data: { kubeconfig: 'two', ...signaturesOf(server) } });
    expect(signaturesOf(server)).toEqual({ 'jws-kubeconfig-aaaaaa': sign('aaaaaa', 'one') });
    clock.move(1000);
    await expect.poll(() => signaturesOf(server)).toEqual({ 'jws-kubeconfig-aaaaaa': sign('aaaaaa', 'two') });
  });
});

describe('token cleaner', () => {
  it('deletes an expired token together with its signature', async () => {
    const clock = handClock('2030-01-01T00:00:00Z');
    const server = await start({ controllers: ['bootstrap-signer', 'token-cleaner'], clock });
    const exists = (id: string) => server.get('v1', 'Secret', `bootstrap-token-${id}`, 'kube-system') !== null;
    server.put(clusterInfo('x'), tokenSecret('aaaaaa', { expiration: '2030-01-01T01:00:00Z' }), tokenSecret('bbbbbb'));
    server.put(tokenSecret('dddddd', { expiration: '2029-12-31T23:59:59Z' }));
    await expect.poll(() => exists('dddddd')).toBe(false);
    clock.move(3600_000 - 1);
    expect(exists('aaaaaa')).toBe(true);
    clock.move(1);
    await expect.poll(() => exists('aaaaaa')).toBe(false);
    expect(exists('bbbbbb')).toBe(true);
    expect(Object.keys(signaturesOf(server))).toEqual(['jws-kubeconfig-bbbbbb']);
  });
});

describe('kubelet CSRs', () => {
  const NODECLIENT = 'system:certificates.k8s.io:certificatesigningrequests:nodeclient';
  const csr = (name: string, more: JsonObject = {}): KubeObject => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(NODE_CSR).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
      ...more,
    },
  });
  const world = async () => {
    const server = await start({ controllers: ['csr-approver', 'csr-signer'] });
    server.put(tokenSecret('aaaaaa'), binding('post', 'system:node-bootstrapper', 'system:bootstrappers'));
    const token = clusterOf(server.kubeconfigWithToken('aaaaaa.0123456789abcdef'));
    const statusOf = (name: string) =>
      (server.get('certificates.k8s.io/v1', 'CertificateSigningRequest', name)?.status ?? {}) as {
        certificate?: string;
        conditions?: readonly { type: string; reason?: string; message?: string }[];
      };
    return { server, token, statusOf };
  };

  it('are approved and signed automatically when the requester may create CSRs for any node', async () => {
    const { server, token, statusOf } = await world();
    server.put(binding('approve', NODECLIENT, 'system:bootstrappers'));
    await token.create(csr('node-csr-1', { expirationSeconds: 3600 }));
    await expect.poll(() => statusOf('node-csr-1').certificate).toBeDefined();
    const certificate = new X509Certificate(Buffer.from(statusOf('node-csr-1').certificate ?? '', 'base64'));
    expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:w1');
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(certificate.verify(new X509Certificate(server.caPem).publicKey)).toBe(true);
    expect(Date.parse(certificate.validTo) - Date.parse(certificate.validFrom)).toBe(3600_000);
    expect(statusOf('node-csr-1').conditions).toMatchObject([{ type: 'Approved', reason: 'AutoApproved' }]);
  });

  it('wait for a manual approval when the requester has no auto-approval permission', async () => {
    const { server, token, statusOf } = await world();
    await token.create(csr('node-csr-2'));
    expect(statusOf('node-csr-2')).toEqual({});
    const admin = clusterOf(server.adminKubeconfig());
    const approval = { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'ByHand', message: '' }] } };
    const at = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', name: 'node-csr-2' };
    await admin.patch(at, 'merge', approval, { subresource: 'approval' });
    await expect.poll(() => statusOf('node-csr-2').certificate).toBeDefined();
  });

  it("for serving are never approved automatically, and fail when they break the signer's rules", async () => {
    const { server, token, statusOf } = await world();
    server.put(binding('approve', NODECLIENT, 'system:bootstrappers'));
    await token.create(csr('serving', { signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] }));
    expect(statusOf('serving')).toEqual({});
    const at = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', name: 'serving' };
    const approval = { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'ByHand', message: '' }] } };
    await clusterOf(server.adminKubeconfig()).patch(at, 'merge', approval, { subresource: 'approval' });
    await expect
      .poll(() => statusOf('serving').conditions?.map(({ type, message }) => [type, message]))
      .toContainEqual(['Failed', 'DNS or IP subjectAltName is required']);
    expect(statusOf('serving').certificate).toBeUndefined();
  });

  it('for renewal are approved for the node itself', async () => {
    const { server, statusOf } = await world();
    server.put(binding('renew', 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient', 'system:nodes'));
    const [w1, w2] = [
      await server.kubeconfigFor('system:node:w1', ['system:nodes']),
      await server.kubeconfigFor('system:node:w2', ['system:nodes']),
    ];
    await clusterOf(w2).create(csr('for-another'));
    await clusterOf(w1).create(csr('for-itself'));
    await expect.poll(() => statusOf('for-itself').certificate).toBeDefined();
    expect(statusOf('for-another')).toEqual({});
  });
});

describe('node lifecycle', () => {
  const at = { apiVersion: 'v1', kind: 'Node', name: 'w1' };
  const world = async () => {
    const clock = handClock('2030-01-01T00:00:00Z');
    const server = await start({ controllers: ['node-lifecycle'], clock });
    const node = clusterOf(await server.kubeconfigFor('system:node:w1', ['system:nodes']));
    await node.create({ ...at, metadata: { name: 'w1' } });
    const report = (...conditions: readonly JsonObject[]) =>
      node.patch(at, 'strategic', { status: { conditions: [...conditions] } }, { subresource: 'status' });
    const found = () => server.get('v1', 'Node', 'w1') as KubeObject & { spec?: JsonObject; status: { conditions: readonly JsonObject[] } };
    const taints = () => ((found().spec?.taints ?? []) as readonly JsonObject[]).map(({ key, effect }) => `${key}:${effect}`).sort();
    return { clock, report, found, taints };
  };
  const ready = (status: string, second = 0) => ({
    type: 'Ready',
    status,
    lastHeartbeatTime: `2030-01-01T00:00:${String(second).padStart(2, '0')}Z`,
  });

  it('taints a Node by its conditions and removes the taints with them', async () => {
    const { report, taints } = await world();
    expect(taints()).toEqual(['node.kubernetes.io/not-ready:NoSchedule']);
    await report(ready('True'));
    expect(taints()).toEqual([]);
    await report(ready('False'), { type: 'DiskPressure', status: 'True' });
    expect(taints()).toEqual([
      'node.kubernetes.io/disk-pressure:NoSchedule',
      'node.kubernetes.io/not-ready:NoExecute',
      'node.kubernetes.io/not-ready:NoSchedule',
    ]);
  });

  it('a Node whose kubelet stopped becomes Unknown after 50 s and Ready with the next report', async () => {
    const { clock, report, found, taints } = await world();
    await report(ready('True'), { type: 'KubeletadmConfig', status: 'True' });
    const move = async (seconds: number) => {
      for (let i = 0; i < seconds / 5; i++) {
        clock.move(5_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const of = (type: string) => found().status.conditions.find((one) => one.type === type);
    await move(50);
    expect(of('Ready')).toMatchObject({ status: 'True' });
    await move(10);
    expect(of('Ready')).toMatchObject({ status: 'Unknown', reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' });
    expect(of('KubeletadmConfig')).toMatchObject({ status: 'True' });
    expect(taints()).toEqual(['node.kubernetes.io/unreachable:NoExecute', 'node.kubernetes.io/unreachable:NoSchedule']);
    await report(ready('True', 59));
    await move(50);
    expect(of('Ready')).toMatchObject({ status: 'True' });
    expect(taints()).toEqual([]);
  });
});

describe('API server double', () => {
  it('starts much faster than a real API server', async () => {
    await within(300, () => start());
  });

  it('keeps its objects and its address over a restart', async () => {
    const server = await start();
    server.put(clusterInfo('x'));
    const { url } = server;
    await server.restart();
    expect(server.url).toBe(url);
    expect(
      await clusterOf(server.adminKubeconfig()).get({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        namespace: 'kube-public',
        name: 'cluster-info',
      }),
    ).not.toBeNull();
  });

  it('logs the user and the request of each call, but no request body', async () => {
    const server = await start();
    server.put(tokenSecret('aaaaaa'));
    const token = clusterOf(server.kubeconfigWithToken('aaaaaa.0123456789abcdef'));
    await token.create(tokenSecret('bbbbbb', { 'token-secret': 'verysecretsecret' })).catch(() => {});
    expect(server.requests).toEqual([
      {
        method: 'POST',
        path: '/api/v1/namespaces/kube-system/secrets',
        verb: 'create',
        resource: 'secrets',
        user: 'system:bootstrap:aaaaaa',
        status: 403,
      },
    ]);
  });

  it('rejects a body larger than three mebibytes', async () => {
    const server = await start();
    const big = clusterInfo('x'.repeat(3 * 1024 * 1024));
    await expect(clusterOf(server.adminKubeconfig()).create(big)).rejects.toMatchObject({
      code: 'CLUSTER_ERROR',
      message: expect.stringContaining('Request entity too large'),
    });
  });

  it('ends a watch after timeoutSeconds, with a last bookmark', async () => {
    const clock = handClock('2030-01-01T00:00:00Z');
    const server = await start({ clock, tokens: { t: { user: 'admin', groups: ['system:masters'] } } });
    const path = '/api/v1/configmaps?watch=true&timeoutSeconds=5&allowWatchBookmarks=true&resourceVersion=1';
    const body = new Promise<string>((resolve, reject) => {
      const asked = httpsRequest(
        `${server.url}${path}`,
        { ca: server.caPem, agent: false, headers: { Authorization: 'Bearer t' } },
        (response) => {
          let text = '';
          response.on('data', (chunk: Buffer) => {
            text += chunk.toString('utf8');
          });
          response.on('end', () => resolve(text));
          clock.move(5000);
        },
      );
      asked.on('error', reject);
      asked.end();
    });
    expect(JSON.parse(await body)).toMatchObject({ type: 'BOOKMARK', object: { kind: 'ConfigMap' } });
  });
});

const hasKubectl = (() => {
  try {
    execFileSync('kubectl', ['version', '--client'], { stdio: 'ignore' });
    return true;
  } catch {
    console.info('skipped: kubectl against the API server double: kubectl is not on the PATH');
    return false;
  }
})();

describe.skipIf(!hasKubectl)('kubectl against the API server double', () => {
  let server: LabApiServer;
  let folder: string;
  const run = promisify(execFile);
  beforeAll(async () => {
    server = await startApiServer({ controllers: ['csr-approver', 'csr-signer'] });
    folder = await mkdtemp(join(tmpdir(), 'kubeletadm-kubectl-'));
    await writeFile(join(folder, 'admin.conf'), server.adminKubeconfig(), { mode: 0o600 });
  });
  afterAll(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });
  const kubectl = async (...args: readonly string[]) => {
    const kubeconfig = ['--kubeconfig', join(folder, 'admin.conf'), '--cache-dir', join(folder, 'cache')];
    const { stdout } = await run('kubectl', [...kubeconfig, ...args], { env: { ...process.env, EDITOR: 'sed -i s/v2/v3/' } });
    return stdout;
  };
  const file = async (name: string, object: object) => {
    await writeFile(join(folder, name), JSON.stringify(object));
    return join(folder, name);
  };
  const configMap = (data: object) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'k', namespace: 'default', labels: { a: 'b' } },
    data,
  });

  it('applies a manifest twice', async () => {
    expect(await kubectl('apply', '-f', await file('cm.json', configMap({ x: 'v1', y: '1' })))).toBe('configmap/k created\n');
    expect(await kubectl('apply', '-f', await file('cm.json', configMap({ x: 'v2' })))).toBe('configmap/k configured\n');
    expect(await kubectl('apply', '-f', join(folder, 'cm.json'))).toBe('configmap/k unchanged\n');
    expect(server.get('v1', 'ConfigMap', 'k', 'default')?.data).toEqual({ x: 'v2' });
  });

  it('edits, labels, patches and replaces', async () => {
    await kubectl('apply', '-f', await file('cm.json', configMap({ x: 'v2' })));
    expect(await kubectl('edit', 'cm', 'k')).toBe('configmap/k edited\n');
    await kubectl('label', 'cm', 'k', 'c=d');
    await kubectl('patch', 'cm', 'k', '--type=json', '-p', '[{"op":"add","path":"/data/z","value":"1"}]');
    expect(server.get('v1', 'ConfigMap', 'k', 'default')).toMatchObject({
      metadata: { labels: { a: 'b', c: 'd' } },
      data: { x: 'v3', z: '1' },
    });
    expect(await kubectl('replace', '-f', join(folder, 'cm.json'))).toBe('configmap/k replaced\n');
  });

  it('refuses protobuf, which kubectl create sends, with the accepted types', async () => {
    const error = await kubectl('create', 'secret', 'generic', 's', '--from-literal=p=q').catch(({ message }: Error) => message);
    expect(error).toContain('accepted media types include: application/json, application/yaml');
    const printed = await kubectl('create', 'secret', 'generic', 's', '--from-literal=p=q', '--dry-run=client', '-o', 'json');
    expect(await kubectl('apply', '-f', await file('secret.json', JSON.parse(printed)))).toBe('secret/s created\n');
    expect(server.get('v1', 'Secret', 's', 'default')).toMatchObject({ data: { p: 'cQ==' }, type: 'Opaque' });
  });

  it('shows nodes', async () => {
    server.put({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'cp-1', labels: { 'node-role.kubernetes.io/control-plane': '' } },
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
        nodeInfo: { kubeletVersion: 'v1.36.2', osImage: 'Debian', kernelVersion: '6.1', containerRuntimeVersion: 'containerd://2' },
      },
    });
    const wide = await kubectl('get', 'nodes', '-o', 'wide');
    expect(wide.replace(/ +/g, ' ')).toMatch(/^cp-1 Ready control-plane \d+s v1\.36\.2 10\.0\.0\.1 <none> Debian 6\.1 containerd:\/\/2$/m);
    await kubectl('cordon', 'cp-1');
    await kubectl('taint', 'node', 'cp-1', 'a=b:NoSchedule');
    expect(await kubectl('describe', 'node', 'cp-1')).toMatch(/^Taints: +a=b:NoSchedule$/m);
    expect(await kubectl('get', 'nodes')).toContain('Ready,SchedulingDisabled');
  });

  it('approves CSRs', async () => {
    const spec = {
      request: Buffer.from(NODE_CSR).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
    };
    const request = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name: 'by-hand' }, spec };
    server.put(request as KubeObject);
    expect(await kubectl('certificate', 'approve', 'by-hand')).toBe('certificatesigningrequest.certificates.k8s.io/by-hand approved\n');
    await expect.poll(() => kubectl('get', 'csr', 'by-hand', '--no-headers')).toContain('Approved,Issued');
  });

  it('receives a Forbidden error for missing permissions', async () => {
    expect(await kubectl('get', 'nodes', '--as', 'bob').catch((error: Error) => error.message)).toContain(
      'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope',
    );
  });
});
