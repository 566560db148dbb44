import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCertificateRequest } from '../../lab/api-server/pki.ts';
import { Secret } from '../../src/base/text/secret.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { hasPermission } from '../../src/kube/has-permission.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { bootstrapRbac } from '../../src/kubeadm/cluster-objects/bootstrap-rbac.ts';
import { kubeletConfigMap, kubeletConfigRbac } from '../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import { explainBootstrap } from '../../src/kubeadm/explain/explain-bootstrap.ts';
import { CLIENT_SIGNER, CSRS, readNodeCsr, SERVING_SIGNER } from '../../src/kubeadm/node-identity/node-csr.ts';
import { tokenSecret } from '../../src/kubeadm/token/token-secret.ts';
import { approveCsr, listKubeletCsrs } from '../../src/kubeadm/workflows/certificates/serving-csrs.ts';

/** A cluster with running controllers, and its clients. */
export interface LifecycleWorld {
  readonly admin: Cluster;
  withToken(token: string): Cluster;
  /** As the kubelet of a node. */
  asNode(name: string): Promise<Cluster>;
  close(): Promise<void>;
}

const TOKEN = 'lcycle.0123456789abcdef';
const GROUP = 'system:bootstrappers:kubeadm:default-node-token';
const APPROVAL = 'kubeadm:node-autoapprove-bootstrap';
const poll = { timeout: 30_000, interval: 50 };
const ANNOTATION = 'kubeadm.alpha.kubernetes.io/cri-socket';

async function csr(name: string, node: string, signerName: string, names: readonly string[] = []): Promise<KubeObject> {
  const { requestPem } = await createCertificateRequest({ commonName: `system:node:${node}`, organizations: ['system:nodes'] }, names);
  const usages = ['digital signature', signerName === SERVING_SIGNER ? 'server auth' : 'client auth'];
  return { ...CSRS, metadata: { name }, spec: { request: Buffer.from(requestPem).toString('base64'), signerName, usages } };
}

function mirrorPod(nodeName: string, nodeUid: string) {
  const owner = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeUid, controller: true };
  const annotations = { 'kubernetes.io/config.mirror': 'hash', 'kubernetes.io/config.source': 'file' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `static-${nodeName}`, namespace: 'kube-system', annotations, ownerReferences: [owner] },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 0,
      tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'pause', image: 'registry.k8s.io/pause:3.10' }],
    },
  };
}

/** The requirements of join, upgrade, reset and certificates on an API server. */
export function nodeLifecycleContract(name: string, start: () => Promise<LifecycleWorld>): void {
  describe(name, () => {
    let world: LifecycleWorld;
    let token: Cluster;
    let node: Cluster;
    const stateOf = async (client: Cluster, request: string) => {
      const found = await client.get({ ...CSRS, name: request });
      return found === null ? null : readNodeCsr(found);
    };

    beforeAll(async () => {
      world = await start();
      const written = { token: new Secret(TOKEN), usages: ['authentication'], groups: [GROUP] };
      const objects = [
        tokenSecret(written, new Date()),
        ...bootstrapRbac().filter(({ metadata }) => metadata.name !== APPROVAL),
        kubeletConfigMap('kubelet-config', 'kind: KubeletConfiguration\n', true),
        ...kubeletConfigRbac('kubelet-config'),
      ];
      for (const object of objects) await world.admin.create(object);
      token = world.withToken(TOKEN);
      node = await world.asNode('w1');
    });
    afterAll(async () => {
      await token?.close();
      await node?.close();
      await world?.close();
    });

    it('a token reads the state of its CSR and its future Node', async () => {
      const request = await csr('node-csr-w1', 'w1', CLIENT_SIGNER);
      await expect.poll(() => token.create(request).catch((error: Error) => error), poll).toMatchObject({ kind: CSRS.kind });
      const { items } = await token.list(CSRS);
      const found = items.map(readNodeCsr).find((each) => each.name === 'node-csr-w1');
      expect(found).toMatchObject({ username: 'system:bootstrap:lcycle', groups: ['system:bootstrappers', GROUP, 'system:authenticated'] });
      expect(explainBootstrap(found === undefined ? [] : [found]).why).toMatch(/is pending\./);
      expect(await token.get({ apiVersion: 'v1', kind: 'Node', name: 'w1' })).toBeNull();
      const binding = bootstrapRbac().find(({ metadata }) => metadata.name === APPROVAL) as KubeObject;
      await world.admin.create(binding);
      await world.admin.patch({ ...CSRS, name: 'node-csr-w1' }, 'merge', { metadata: { labels: { inspect: 'again' } } });
      await expect.poll(async () => (await stateOf(token, 'node-csr-w1'))?.state, poll).toEqual({ kind: 'issued' });
    });

    it('a token may neither approve nor delete', async () => {
      await token.create(await csr('node-csr-w9', 'w9', CLIENT_SIGNER));
      expect(await hasPermission(token, { verb: 'delete', group: '', resource: 'nodes', name: 'w1' })).toBe(false);
      expect(await hasPermission(token, { verb: 'list', group: 'certificates.k8s.io', resource: 'certificatesigningrequests' })).toBe(true);
    });

    it('a node registers, labels itself within limits, reads kubelet-config and removes its annotation', async () => {
      const ref = { apiVersion: 'v1', kind: 'Node', name: 'w1' } as const;
      await node.create({ ...ref, metadata: { name: 'w1', labels: { pool: 'edge' }, annotations: { [ANNOTATION]: 'unix:///x' } } });
      await expect(node.patch(ref, 'strategic', { metadata: { labels: { 'node-role.kubernetes.io/worker': '' } } })).rejects.toMatchObject({
        code: 'CLUSTER_FORBIDDEN',
      });
      await expect(node.patch(ref, 'strategic', { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } })).rejects.toMatchObject({
        code: 'CLUSTER_FORBIDDEN',
      });
      await expect
        .poll(() => node.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubelet-config' }), poll)
        .not.toBeNull();
      await node.patch(ref, 'strategic', { metadata: { annotations: { [ANNOTATION]: null } } });
      expect((await node.get(ref))?.metadata.annotations?.[ANNOTATION]).toBeUndefined();
      const marks = {
        metadata: { labels: { 'node-role.kubernetes.io/worker': '' } },
        spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] },
      };
      const marked = await world.admin.patch(ref, 'strategic', marks);
      expect(marked.metadata.labels).toMatchObject({ pool: 'edge', 'node-role.kubernetes.io/worker': '' });
      expect(marked.spec).toMatchObject({ taints: [{ key: 'a', effect: 'NoSchedule' }] });
    });

    it('a CSR for a serving certificate is approved as it was validated, or not at all', async () => {
      const ref = { apiVersion: 'v1', kind: 'Node', name: 'w1' } as const;
      const addresses = [
        { type: 'InternalIP', address: '10.0.0.4' },
        { type: 'Hostname', address: 'w1' },
      ];
      await node.patch(ref, 'merge', { status: { addresses } }, { subresource: 'status' });
      await node.create(await csr('csr-good', 'w1', SERVING_SIGNER, ['w1', '10.0.0.4']));
      await node.create(await csr('csr-bad', 'w1', SERVING_SIGNER, ['w1', '10.0.0.5']));
      const found = await listKubeletCsrs(world.admin);
      const of = (request: string) => found.find(({ csr: each }) => each.name === request);
      expect(of('csr-good')?.verdict.refusals).toEqual([]);
      expect(of('csr-bad')?.verdict.refusals).toEqual([
        {
          code: 'CSR_FOREIGN_NAME',
          message: 'IP:10.0.0.5 is not a name or address of Node w1; its known names and addresses are w1, 10.0.0.4',
        },
      ]);
      const validated = of('csr-good');
      if (validated === undefined) throw new Error('no request');
      await world.admin.patch({ ...CSRS, name: 'csr-good' }, 'merge', { metadata: { labels: { changed: 'since' } } });
      await expect(approveCsr(world.admin, validated)).rejects.toMatchObject({ code: 'CLUSTER_CONFLICT' });
      await expect(approveCsr(node, validated)).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
      const again = (await listKubeletCsrs(world.admin)).find(({ csr: each }) => each.name === 'csr-good');
      if (again === undefined) throw new Error('no request');
      await approveCsr(world.admin, again);
      await expect.poll(async () => (await stateOf(world.admin, 'csr-good'))?.state, poll).toEqual({ kind: 'issued' });
    });

    it('a node creates mirror pods of its own, and uses only pods bound to it', async () => {
      const other = await world.asNode('w2');
      try {
        await other.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'w2' } });
        const uid = (await world.admin.get({ apiVersion: 'v1', kind: 'Node', name: 'w1' }))?.metadata.uid ?? '';
        const codeOf = (call: Promise<unknown>): Promise<string> =>
          call.then(
            () => 'done',
            (error: { readonly code?: string }) => error.code ?? String(error),
          );
        const mirror = mirrorPod('w1', uid);
        const { annotations: _none, ...unmarked } = mirror.metadata;
        // The API server sees the Node in a cache of its own.
        await expect.poll(() => codeOf(node.create(mirror)), poll).toMatch(/^(?:done|CLUSTER_ALREADY_EXISTS)$/);
        const renamed = { ...mirror.metadata, name: 'another-w1' };
        for (const refused of [
          { ...mirror, metadata: { ...unmarked, name: 'another-w1' } },
          { ...mirror, metadata: { ...renamed, ownerReferences: [] } },
          { ...mirror, metadata: { ...renamed, ownerReferences: [{ ...mirror.metadata.ownerReferences[0], uid: 'other' }] } },
          { ...mirror, metadata: renamed, spec: { ...mirror.spec, nodeName: 'w2' } },
          { ...mirror, metadata: renamed, spec: { ...mirror.spec, serviceAccountName: 'default' } },
          { ...mirror, metadata: renamed, spec: { ...mirror.spec, volumes: [{ name: 'v', secret: { secretName: 's' } }] } },
        ])
          expect(await codeOf(node.create(refused))).toBe('CLUSTER_FORBIDDEN');

        const ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system', name: mirror.metadata.name } as const;
        const pods = { apiVersion: 'v1', kind: 'Pod' };
        const namesFor = async (client: Cluster, nodeName: string) =>
          (await client.list(pods, { fieldSelector: `spec.nodeName=${nodeName}` })).items.map(({ metadata }) => metadata.name);
        expect(await namesFor(node, 'w1')).toEqual([mirror.metadata.name]);
        expect(await namesFor(other, 'w2')).toEqual([]);
        expect(await codeOf(node.list(pods))).toBe('CLUSTER_FORBIDDEN');
        expect(await codeOf(node.list({ ...pods, namespace: 'kube-system' }))).toBe('CLUSTER_FORBIDDEN');
        expect(await codeOf(other.list(pods, { fieldSelector: 'spec.nodeName=w1' }))).toBe('CLUSTER_FORBIDDEN');
        await expect.poll(() => codeOf(node.get(ref)), poll).toBe('done');
        expect(await codeOf(other.get(ref))).toBe('CLUSTER_FORBIDDEN');
        // Not 404: a node learns nothing about pods that are not bound to it.
        expect(await codeOf(node.get({ ...ref, name: 'absent' }))).toBe('CLUSTER_FORBIDDEN');

        const running = { status: { phase: 'Running' } };
        expect(await codeOf(node.patch(ref, 'merge', running, { subresource: 'status' }))).toBe('done');
        expect(await codeOf(other.patch(ref, 'merge', running, { subresource: 'status' }))).toBe('CLUSTER_FORBIDDEN');
        expect(await codeOf(node.patch(ref, 'merge', { metadata: { labels: { a: 'b' } } }))).toBe('CLUSTER_FORBIDDEN');
        expect(await codeOf(other.delete(ref))).toBe('CLUSTER_FORBIDDEN');
        expect(await codeOf(node.delete(ref))).toBe('done');
        expect(await world.admin.get(ref)).toBeNull();
      } finally {
        await other.close();
      }
    });

    it('an administrator deletes a Node, the node itself is not permitted to', async () => {
      const ref = { apiVersion: 'v1', kind: 'Node', name: 'w1' } as const;
      const asked = { verb: 'delete', group: '', resource: 'nodes', name: 'w1' };
      expect(await hasPermission(node, asked)).toBe(false);
      expect(await hasPermission(world.admin, asked)).toBe(true);
      await expect(node.delete(ref)).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
      await world.admin.delete(ref);
      await expect.poll(() => world.admin.get(ref), poll).toBeNull();
    });
  });
}
