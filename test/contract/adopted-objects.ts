import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { renderTable } from '../../src/base/text/table.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { refOf } from '../../src/kube/object.ts';
import { dataOf } from '../../src/kubeadm/cluster-objects/cluster-info.ts';
import { isSignedBy } from '../../src/kubeadm/token/jws.ts';
import { caPinsOf } from '../../src/x509/ca-pin.ts';
import { runCommand } from '../support/run-cli.ts';

/** An empty cluster with running controllers. */
export interface EmptyWorld {
  /** As an admin. */
  readonly cluster: Cluster;
  readonly kubeconfig: string;
  readonly url: string;
  readonly caPem: string;
  close(): Promise<void>;
}

const FIXTURE = new URL('../fixtures/kubeadm-1.36.2/cluster-objects/', import.meta.url);
const recorded = parse(readFileSync(new URL('expected.yaml', FIXTURE), 'utf8')) as KubeObject[];
const RBAC = { apiVersion: 'rbac.authorization.k8s.io/v1', apiGroup: 'rbac.authorization.k8s.io' };
/** kubeadm creates it together with admin.conf. */
const CLUSTER_ADMINS: KubeObject = {
  apiVersion: RBAC.apiVersion,
  kind: 'ClusterRoleBinding',
  metadata: { name: 'kubeadm:cluster-admins' },
  roleRef: { apiGroup: RBAC.apiGroup, kind: 'ClusterRole', name: 'cluster-admin' },
  subjects: [{ apiGroup: RBAC.apiGroup, kind: 'Group', name: 'kubeadm:cluster-admins' }],
};
const WANTED = [...recorded, CLUSTER_ADMINS];

/** cluster adopt creates the same objects in a cluster as kubeadm init. */
export function adoptedObjectsContract(name: string, start: () => Promise<EmptyWorld>): void {
  describe(name, () => {
    const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-objects-'));
    const file = (path: string, text: string): string => {
      writeFileSync(join(directory, path), text, { mode: 0o600 });
      return join(directory, path);
    };
    const config = file('init.yaml', readFileSync(new URL('input.yaml', FIXTURE), 'utf8'));
    let world: EmptyWorld;
    let admin: string;
    beforeAll(async () => {
      world = await start();
      admin = file('admin.conf', world.kubeconfig);
    });
    afterAll(async () => {
      await world?.close();
      rmSync(directory, { recursive: true, force: true });
    });
    const adopt = (...more: readonly string[]) => runCommand(['cluster', 'adopt', '--kubeconfig', admin, '--print-join-command', ...more]);
    const tokenNames = async () => {
      const { items } = await world.cluster.list({ apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system' });
      return items.map(({ metadata }) => metadata.name).filter((secret) => secret.startsWith('bootstrap-token-'));
    };

    it('has the objects that kubeadm creates, equal after defaulting', { timeout: 120_000 }, async () => {
      const before = Date.now();
      const { code, stdout, stderr } = await adopt('--config', config);
      expect(code, stderr).toBe(0);
      const rows: string[][] = [];
      for (const desired of WANTED) {
        const found = await world.cluster.get(refOf(desired));
        const same = found !== null && JSON.stringify(sorted(recordable(found, world, before))) === JSON.stringify(sorted(desired));
        rows.push([
          desired.kind,
          desired.metadata.namespace ?? '',
          desired.metadata.name,
          found === null ? 'MISSING' : same ? 'equal' : 'DIFFERS',
        ]);
      }
      console.log(`${name}\n${renderTable([['KIND', 'NAMESPACE', 'NAME', 'KUBEADM 1.36.2'], ...rows]).join('\n')}`);
      for (const desired of WANTED) expect(recordable(await mustGet(world.cluster, desired), world, before)).toEqual(desired);
      expect(rows).toHaveLength(18);
      const line = `kubeletadm join ${world.url.replace('https://', '')} --token abcde0.0123456789abcdef --discovery-token-ca-cert-hash ${caPinsOf(world.caPem)?.[0]}`;
      expect(stdout).toBe(`\nJoin other nodes with:\n\n  ${line}\n\n`);
      expect(stderr).not.toContain('0123456789abcdef');
    });

    it('is signed for the signing token only', async () => {
      const clusterInfo = recorded.find(({ metadata }) => metadata.name === 'cluster-info') as KubeObject;
      // The bootstrap signer signs some time after the object was written.
      const data = await vi.waitFor(
        async () => {
          const found = dataOf(await mustGet(world.cluster, clusterInfo));
          expect(Object.keys(found).sort()).toEqual(['jws-kubeconfig-abcde0', 'kubeconfig']);
          return found;
        },
        { timeout: 30_000 },
      );
      expect(isSignedBy(data['jws-kubeconfig-abcde0'] ?? '', 'abcde0', new Secret('0123456789abcdef'), data.kubeconfig ?? '')).toBe(true);
    });

    it('is unchanged in the second run', async () => {
      const { code, stdout, stderr } = await adopt('--config', config, '--dry-run', '--exit-code');
      expect(code, stdout + stderr).toBe(0);
      expect(stdout).toMatch(/Nothing to do\.\n$/);
    });

    it('restores changed objects, and keeps additions of others', async () => {
      const rbac = 'rbac.authorization.k8s.io/v1';
      await world.cluster.delete({ apiVersion: rbac, kind: 'ClusterRoleBinding', name: 'kubeadm:get-nodes' });
      const role = { apiVersion: rbac, kind: 'Role', namespace: 'kube-public', name: 'kubeadm:bootstrap-signer-clusterinfo' };
      await world.cluster.patch(role, 'merge', { metadata: { labels: { theirs: 'x' } }, rules: [] });
      const { code, stderr } = await adopt('--config', config);
      expect(code, stderr).toBe(0);
      expect((await world.cluster.get(role))?.metadata.labels).toEqual({ theirs: 'x' });
      expect((await world.cluster.get(role))?.rules).toEqual(
        recorded.find(({ kind, metadata }) => kind === 'Role' && metadata.name === role.name)?.rules,
      );
      expect(await world.cluster.get({ apiVersion: rbac, kind: 'ClusterRoleBinding', name: 'kubeadm:get-nodes' })).not.toBeNull();
    });

    it('without a token: uses an existing usable token, and creates one only when none exists', async () => {
      const tokens = await tokenNames();
      const used = await adopt();
      expect(used.code, used.stderr).toBe(0);
      expect(used.stdout).toContain('--token abcde0.0123456789abcdef ');
      expect(await tokenNames()).toEqual(tokens);
      for (const secret of tokens) await world.cluster.delete({ apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system', name: secret });

      const dry = await adopt('--dry-run', '-o', 'json');
      expect(dry.stdout).toContain('"name": "bootstrap-token-dryrun"');
      expect(await tokenNames()).toEqual([]);

      const made = await adopt();
      expect(made.code, made.stderr).toBe(0);
      const [, token = ''] = / --token (\S+) /.exec(made.stdout) ?? [];
      expect(token).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/);
      expect(await tokenNames()).toEqual([`bootstrap-token-${token.slice(0, 6)}`]);
      expect(made.stderr).not.toContain(token.slice(7));
      const again = await adopt('--skip-token-print', '-v', '9');
      expect(again.stdout).toContain(' --token <value withheld> ');
      expect(again.stdout + again.stderr).not.toContain(token.slice(7));
      expect(await tokenNames()).toHaveLength(1);
      for (const more of [
        ['--dry-run', '-v', '9'],
        ['--dry-run', '-o', 'yaml'],
        ['-o', 'json'],
        ['--token', token, '--token-ttl', '1h', '--dry-run', '-v', '9'],
      ]) {
        const { code, stdout, stderr } = await adopt(...more);
        expect(code, stderr).toBe(0);
        expect(stdout + stderr).not.toContain(token.slice(7));
        expect(stdout + stderr).not.toContain(Buffer.from(token.slice(7)).toString('base64'));
        if (more.includes('json')) expect(JSON.parse(stdout)).toMatchObject({ kind: 'Plan' });
      }
    });
  });
}

async function mustGet(cluster: Cluster, object: KubeObject): Promise<KubeObject> {
  const found = await cluster.get(refOf(object));
  if (found === null) throw new Error(`${object.kind} ${object.metadata.name} does not exist`);
  return found;
}

/** An object of the server in the recorded form. Documents inside ConfigMaps stay strings: they are byte-for-byte identical. */
function recordable(found: KubeObject, { url, caPem }: EmptyWorld, before: number): JsonObject {
  const { name, namespace, labels, annotations } = found.metadata;
  const metadata = Object.fromEntries(Object.entries({ name, namespace, labels, annotations }).filter(([, value]) => value !== undefined));
  const { data: _, metadata: __, ...rest } = found;
  if (found.data === undefined) return { ...rest, metadata } as JsonObject;
  const data = Object.entries(dataOf(found)).map(([key, value]): [string, string] => [
    key,
    found.kind === 'Secret' ? Buffer.from(value, 'base64').toString() : value,
  ]);
  const shown = data
    .filter(([key]) => !key.startsWith('jws-'))
    .map(([key, value]): [string, string] => {
      if (key === 'expiration') return [key, Math.abs(Date.parse(value) - before - 7_200_000) < 60_000 ? '@2h@' : value];
      return [key, value.replace(Buffer.from(caPem).toString('base64'), '@CA@').replace(url, '@SERVER@')];
    });
  return { ...rest, metadata, data: Object.fromEntries(shown) } as JsonObject;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}
