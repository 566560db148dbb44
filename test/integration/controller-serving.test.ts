import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type CertificateAuthority,
  createCa,
  createCertificateRequest,
  type KeyPair,
  parseCertificateRequest,
} from '../../lab/api-server/pki.ts';
import type { ReportEvent } from '../../src/base/reporter.ts';
import { nodeHttpsClient } from '../../src/kube/adapters/https-client.ts';
import type { HttpsClient } from '../../src/kube/https-client.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { approveServing, ServingApprover } from '../../src/rollouts/controller/approve-serving.ts';
import { ControllerMetrics } from '../../src/rollouts/controller/metrics.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../support/fake-cluster.ts';

const CSR = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' } as const;
const NODE = { apiVersion: 'v1', kind: 'Node' } as const;
const [FIRST, SECOND] = ['192.0.2.1', '192.0.2.2'];

let ca: CertificateAuthority;
let otherCa: CertificateAuthority;
beforeAll(async () => {
  [ca, otherCa] = await Promise.all([createCa(), createCa()]);
});

async function requestFor(node: string, sans: readonly string[]) {
  return createCertificateRequest({ commonName: `system:node:${node}`, organizations: ['system:nodes'] }, sans);
}

/** A serving certificate as the signer of kube-controller-manager issues it. */
async function issue(node: string, sans: readonly string[], by: CertificateAuthority, isExpired = false): Promise<KeyPair> {
  const { requestPem, keyPem } = await requestFor(node, sans);
  const day = 86_400_000;
  const start = Date.now() - (isExpired ? 2 : 0.5) * day;
  const validity = { notBefore: new Date(start), notAfter: new Date(start + day) };
  const certPem = await by.signRequest(parseCertificateRequest(requestPem), ['digital signature', 'server auth'], validity);
  return { certPem, keyPem };
}

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Nodes with addresses in their status, and kubelets that serve at some addresses with real TLS. */
async function world(nodes: Readonly<Record<string, readonly string[]>>) {
  const cluster = fakeCluster({
    objects: [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'kube-root-ca.crt', namespace: 'kubeletadm-system' },
        data: { 'ca.crt': ca.certPem },
      },
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'kubernetes', namespace: 'default' }, spec: { clusterIP: '10.96.0.1' } },
    ],
  });
  const ports = new Map<string, number>();
  const dialled: string[] = [];
  /** Leads each address to a server of the loopback interface. */
  const real = nodeHttpsClient({});
  const web: HttpsClient = {
    get: (request) => {
      const { hostname, port } = new URL(request.url);
      dialled.push(`${hostname}:${port}`);
      const target = ports.get(hostname);
      if (target === undefined) return Promise.resolve({ kind: 'failed', issue: { kind: 'refused' } });
      return real.get({ ...request, url: `https://127.0.0.1:${target}/healthz`, serverName: hostname });
    },
  };
  for (const [name, addresses] of Object.entries(nodes)) {
    await cluster.create({ ...NODE, metadata: { name } });
    const status = {
      addresses: [{ type: 'Hostname', address: name }, ...addresses.map((address) => ({ type: 'InternalIP', address }))],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
    };
    await cluster.patch({ ...NODE, name }, 'merge', { status }, { subresource: 'status' });
  }
  const asNode = (node: string): FakeCluster =>
    fakeCluster({ user: { name: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] }, sharedWith: cluster });
  const events: ReportEvent[] = [];
  const metrics = new ControllerMetrics();
  const approverPorts = {
    cluster,
    web,
    clock: fakeClock(),
    reporter: { report: (event: ReportEvent) => void events.push(event) },
    signal: new AbortController().signal,
    metrics,
  };
  const options = { namespace: 'kubeletadm-system', serverNames: [] };
  const approver = new ServingApprover(approverPorts, options);
  return {
    cluster,
    dialled,
    events,
    serve: async (address: string, { certPem: cert, keyPem: key }: KeyPair): Promise<void> => {
      const server = createServer({ cert, key }, (_, response) => void response.writeHead(401).end());
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      ports.set(address, (server.address() as AddressInfo).port);
    },
    request: async (name: string, node: string, sans: readonly string[]): Promise<void> => {
      const { requestPem } = await requestFor(node, sans);
      const request = Buffer.from(requestPem).toString('base64');
      const spec = { request, signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] };
      await asNode(node).create({ ...CSR, metadata: { name }, spec } as KubeObject);
    },
    step: () => approver.step(),
    /** Approves until the signal is aborted; connections to kubelets end with `get`. */
    run: (signal: AbortSignal, get: HttpsClient['get']): Promise<void> =>
      approveServing({ ...approverPorts, signal, web: { get }, random: () => 0 }, cluster, {
        ...options,
        onIssue: ({ message }) => void events.push({ level: 'error', code: 'ISSUE', message }),
      }),
    approved: async (): Promise<readonly string[]> =>
      (await cluster.list(CSR)).items
        .filter(({ status }) => JSON.stringify(status ?? {}).includes('Approved'))
        .map(({ metadata }) => metadata.name),
    metric: async (name: string): Promise<string | undefined> => new RegExp(`^${name} (.*)$`, 'm').exec(await metrics.text())?.[1],
  };
}

describe('the approval of serving certificates', () => {
  it('renews a certificate with names that the certificate in use proves', async () => {
    const { serve, request, step, approved, events, dialled, metric } = await world({ n1: [FIRST, SECOND] });
    for (const address of [FIRST, SECOND]) await serve(address, await issue('n1', ['n1', FIRST, SECOND], ca));
    await request('renewal', 'n1', ['n1', FIRST, SECOND]);
    await step();
    expect(await approved()).toEqual(['renewal']);
    expect(dialled.toSorted()).toEqual([`${FIRST}:10250`, `${SECOND}:10250`]);
    expect(events.map(({ code, message }) => `${code} ${message}`)).toEqual([
      `CSR_APPROVED CSR renewal is approved: DNS:n1, IP:${FIRST}, IP:${SECOND}`,
    ]);
    expect([await metric('kubeletadm_serving_csrs_approved_total'), await metric('kubeletadm_serving_csrs_pending')]).toEqual(['1', '0']);
    await step();
    expect(events).toHaveLength(1);
  });

  it('leaves the first certificate of a node to the operator, and reports that once', async () => {
    const { request, step, approved, events, metric } = await world({ n1: [FIRST] });
    await request('first', 'n1', ['n1', FIRST]);
    await step();
    await step();
    expect(await approved()).toEqual([]);
    expect(events.map(({ code, message }) => `${code} ${message}`)).toEqual([
      `CSR_NOT_CONFIRMED CSR first is not approved: no serving certificate that the node uses now confirms IP:${FIRST}; for the first certificate of a node or a new address, run kubeletadm csr approve first`,
    ]);
    expect(await metric('kubeletadm_serving_csrs_pending')).toBe('1');
  });

  it.each<[string, (serve: Awaited<ReturnType<typeof world>>['serve']) => Promise<void>]>([
    [
      'one of the addresses is new',
      async (serve) => {
        await serve(FIRST, await issue('n1', ['n1', FIRST], ca));
        await serve(SECOND, await issue('n1', ['n1', FIRST], ca));
      },
    ],
    ['another host has one of the addresses now', async (serve) => serve(FIRST, await issue('n1', ['n1', FIRST, SECOND], ca))],
    [
      'a certificate is that of another node',
      async (serve) => {
        await serve(FIRST, await issue('n1', ['n1', FIRST, SECOND], ca));
        await serve(SECOND, await issue('n2', ['n2', SECOND], ca));
      },
    ],
    [
      'a certificate was issued by another CA',
      async (serve) => {
        await serve(FIRST, await issue('n1', ['n1', FIRST, SECOND], ca));
        await serve(SECOND, await issue('n1', ['n1', FIRST, SECOND], otherCa));
      },
    ],
    [
      'a certificate has expired',
      async (serve) => {
        await serve(FIRST, await issue('n1', ['n1', FIRST, SECOND], ca));
        await serve(SECOND, await issue('n1', ['n1', FIRST, SECOND], ca, true));
      },
    ],
  ])('approves nothing if %s', async (_, prepare) => {
    const { serve, request, step, approved, events } = await world({ n1: [FIRST, SECOND], n2: [] });
    await prepare(serve);
    await request('renewal', 'n1', ['n1', FIRST, SECOND]);
    await step();
    expect(await approved()).toEqual([]);
    expect(events.map(({ code }) => code)).toEqual(['CSR_NOT_CONFIRMED']);
    expect(events[0]?.message).toContain(`IP:${SECOND}`);
    expect(events[0]?.message).not.toContain(`IP:${FIRST}`);
  });

  it('connects to no address of a CSR that other checks refuse', async () => {
    const { serve, request, step, approved, events, dialled } = await world({ n1: [FIRST], n2: [FIRST] });
    await serve(FIRST, await issue('n1', ['n1', FIRST], ca));
    await request('theft', 'n2', ['n2', FIRST]);
    await request('name', 'n2', ['n1']);
    await step();
    expect(await approved()).toEqual([]);
    expect([events.map(({ code }) => code), dialled]).toEqual([['CSR_NAME_OF_ANOTHER_NODE', 'CSR_NAME_OF_ANOTHER_NODE'], []]);
  });

  it('confirms a longer name of the node only if the certificate in use has it', async () => {
    const { cluster, serve, request, step, approved } = await world({ n1: [FIRST] });
    const addresses = [FIRST, 'n1.a.example', 'n1.b.example'].map((address) => ({
      type: /^\d/.test(address) ? 'InternalIP' : 'InternalDNS',
      address,
    }));
    await cluster.patch({ ...NODE, name: 'n1' }, 'merge', { status: { addresses } }, { subresource: 'status' });
    await serve(FIRST, await issue('n1', ['n1', 'n1.a.example', FIRST], ca));
    await request('known', 'n1', ['n1', 'n1.a.example', FIRST]);
    await request('new', 'n1', ['n1', 'n1.b.example', FIRST]);
    await step();
    expect(await approved()).toEqual(['known']);
  });

  it.each<[string, HttpsClient['get']]>([
    ['does not answer', ({ signal }) => Promise.reject(signal?.reason)],
    ['has answered', () => Promise.resolve({ kind: 'failed', issue: { kind: 'refused' } })],
  ])('ends without an error, and shows no CSR, when it is stopped while a kubelet %s', async (_, answer) => {
    const { request, run, events, metric } = await world({ n1: [FIRST] });
    await request('first', 'n1', ['n1', FIRST]);
    const stop = new AbortController();
    await run(stop.signal, (asked) => {
      stop.abort(new Error('the lease is lost'));
      return answer(asked);
    });
    expect([events.filter(({ level }) => level === 'error'), await metric('kubeletadm_serving_csrs_pending')]).toEqual([[], '0']);
  });

  it('reports a CSR again that was created again', async () => {
    const { cluster, request, step, events } = await world({ n1: [FIRST] });
    for (let i = 0; i < 2; i++) {
      await request('first', 'n1', ['n1', FIRST]);
      await step();
      await step();
      await cluster.delete({ ...CSR, name: 'first' });
      await step();
    }
    expect(events.map(({ code }) => code)).toEqual(['CSR_NOT_CONFIRMED', 'CSR_NOT_CONFIRMED']);
  });
});
