import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/text/secret.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { clusterInfoKubeconfig } from '../../src/kube/kubeconfig-render.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { BOOTSTRAP_GROUP } from '../../src/kubeadm/cluster-objects/bootstrap-rbac.ts';
import { clusterInfoMap, clusterInfoRbac } from '../../src/kubeadm/cluster-objects/cluster-info.ts';
import { kubeletConfigRbac } from '../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import { tokenSecret, tokenSecretRef } from '../../src/kubeadm/token/token-secret.ts';
import { caPinsOf } from '../../src/x509/ca-pin.ts';
import { TOKEN } from '../support/cluster-info.ts';
import { runCommand } from '../support/run-cli.ts';

/** An API server with a bootstrap signer and default objects only. */
export interface DiscoveryWorld {
  readonly cluster: Cluster;
  readonly url: string;
  readonly caPem: string;
  close(): Promise<void>;
}

const CLUSTER_INFO = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-public', name: 'cluster-info' } as const;
const GROUPS = [String(BOOTSTRAP_GROUP.name)];
const kubeletConfig: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'kubelet-config', namespace: 'kube-system' },
  data: { kubelet: 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n' },
};

/** How join discovers a cluster, and how it is rejected, with any API server. */
export function discoveryContract(name: string, start: () => Promise<DiscoveryWorld>): void {
  describe(name, () => {
    let world: DiscoveryWorld;
    let directory: string;
    let count = 0;
    const addToken = (token: string, usages: readonly string[]) => {
      const groups = usages.includes('authentication') ? GROUPS : [];
      return world.cluster.create(tokenSecret({ token: new Secret(token), usages, groups }, new Date()));
    };
    const signatures = async () => Object.keys(((await world.cluster.get(CLUSTER_INFO))?.data ?? {}) as object);
    const untilSigned = async (id: string) => {
      for (let i = 0; i < 100 && !(await signatures()).includes(`jws-kubeconfig-${id}`); i++)
        await new Promise((done) => setTimeout(done, 100));
    };
    const joinBy = async (discovery: object, timeout = '20s') => {
      const [config, root] = [join(directory, `join-${++count}.yaml`), join(directory, `root-${count}`)];
      const nodeRegistration = { name: 'node-7', criSocket: 'unix:///var/run/containerd/containerd.sock' };
      const document = {
        apiVersion: 'kubeadm.k8s.io/v1beta4',
        kind: 'JoinConfiguration',
        discovery,
        nodeRegistration,
        timeouts: { discovery: timeout },
      };
      writeFileSync(config, JSON.stringify(document));
      const started = Date.now();
      const result = await runCommand(['join', '--config', config, '--rootfs', root]);
      return { ...result, root, tookMs: Date.now() - started };
    };
    const byToken = (token: string = TOKEN.full, caCertHashes: readonly string[] | null = caPinsOf(world.caPem), timeout?: string) =>
      joinBy({ bootstrapToken: { token, apiServerEndpoint: new URL(world.url).host, caCertHashes } }, timeout);

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'kubeletadm-discovery-'));
      world = await start();
      const objects = [
        ...clusterInfoRbac(),
        ...kubeletConfigRbac('kubelet-config'),
        kubeletConfig,
        clusterInfoMap({ server: world.url, caPem: world.caPem }),
      ];
      for (const object of objects) await world.cluster.create(object);
      await addToken(TOKEN.full, ['signing', 'authentication']);
      await addToken('signer.0123456789abcdef', ['signing']);
      await untilSigned(TOKEN.id);
      await untilSigned('signer');
    });
    afterAll(async () => {
      await world?.close();
      rmSync(directory, { recursive: true, force: true });
    });

    it('a token and a pin find it', async () => {
      const { code, stderr, root } = await byToken();
      expect(code, stderr).toBe(0);
      expect(readFileSync(join(root, 'etc/kubernetes/bootstrap-kubelet.conf'), 'utf8')).toContain(`server: ${world.url}\n`);
      expect(readFileSync(join(root, 'etc/kubernetes/pki/ca.crt'), 'utf8')).toBe(world.caPem);
    });

    it.each([
      ['that is unknown', 'zzzzzz.0123456789abcdef', 'DISCOVERY_TOKEN_UNKNOWN'],
      ['with another secret', `${TOKEN.id}.fedcba9876543210`, 'DISCOVERY_SIGNATURE'],
      ['that may only sign', 'signer.0123456789abcdef', 'DISCOVERY_TOKEN_REFUSED'],
    ])('a token %s is rejected long before the timeout', async (_, token, code) => {
      const result = await byToken(token);
      expect([result.code, result.stderr]).toEqual([3, expect.stringContaining(`[${code}]\n`)]);
      expect(result.tookMs).toBeLessThan(10_000);
    });

    it('a token without the signing usage is waited for, and recognised', async () => {
      await addToken('logsin.0123456789abcdef', ['authentication']);
      const result = await byToken('logsin.0123456789abcdef', caPinsOf(world.caPem), '4s');
      expect([result.code, result.stderr]).toEqual([
        1,
        expect.stringMatching(
          /the token lacks the usage "signing" or was just created \(gave up after 4s\)\. .*\[DISCOVERY_NO_SIGNATURE\]\n$/,
        ),
      ]);
      await world.cluster.delete(tokenSecretRef('logsin'));
    });

    it('another pin is rejected', async () => {
      const { code, stderr } = await byToken(TOKEN.full, [`sha256:${'0'.repeat(64)}`]);
      expect([code, stderr]).toEqual([3, expect.stringContaining(`found ${caPinsOf(world.caPem)?.[0]}`)]);
    });

    it('a token created shortly after is waited for', async () => {
      const joining = byToken('latest.0123456789abcdef');
      await new Promise((done) => setTimeout(done, 300));
      await addToken('latest.0123456789abcdef', ['signing', 'authentication']);
      const { code, stderr } = await joining;
      expect(code, stderr).toBe(0);
    });

    it('a signature older than the content is waited for', async () => {
      const before = await world.cluster.get(CLUSTER_INFO);
      const data = before?.data as Readonly<Record<string, string>>;
      const kubeconfig = `${clusterInfoKubeconfig({ server: world.url, caPem: world.caPem })}# changed\n`;
      await world.cluster.update({ ...(before as KubeObject), data: { ...data, kubeconfig } });
      const { code, stderr } = await byToken();
      expect(code, stderr).toBe(0);
    });

    it('without anonymous access to cluster-info discovery fails by token and succeeds by file', async () => {
      const binding = {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        namespace: 'kube-public',
        name: 'kubeadm:bootstrap-signer-clusterinfo',
      };
      const removed = await world.cluster.delete(binding);
      expect(removed).not.toBeNull();
      const again = () => byToken(TOKEN.full, caPinsOf(world.caPem), '1s');
      let refused = await again();
      // The API server caches authorization results briefly.
      for (let i = 0; i < 20 && refused.code === 0; i++) refused = await again();
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('[DISCOVERY_FORBIDDEN]\n')]);
      const kubeConfigPath = join(directory, 'discovery.conf');
      writeFileSync(kubeConfigPath, clusterInfoKubeconfig({ server: world.url, caPem: world.caPem }));
      const { code, stderr } = await joinBy({ file: { kubeConfigPath }, tlsBootstrapToken: TOKEN.full }, '1s');
      expect(code, stderr).toBe(0);
    });
  });
}
