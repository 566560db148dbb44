import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { controllerObjects, hostControllerObjects } from '../../src/rollouts/install/controller-objects.ts';
import { TEST_IMAGE } from '../support/controller-account.ts';
import { type FakeCluster, fakeCluster } from '../support/fake-cluster.ts';
import { runCommand } from '../support/run-cli.ts';
import { TOKEN_KUBECONFIG } from '../support/token-kubeconfig.ts';

const OTHER_IMAGE = TEST_IMAGE.replace(/a/g, (letter, at: number) => (at > 40 ? 'b' : letter));
const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'kubeletadm-system', name: 'kubeletadm-controller' };
const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  name: 'kubeletconfigrollouts.kubeletadm.dev',
};

let directory: string;
let cluster: FakeCluster;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'controller-install-'));
  writeFileSync(join(directory, 'admin.conf'), TOKEN_KUBECONFIG);
  cluster = fakeCluster();
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const controller = (...argv: readonly string[]) =>
  runCommand(['controller', ...argv], {
    env: { KUBECONFIG: join(directory, 'admin.conf'), HOME: directory },
    services: () => ({ connectCluster: async () => ({ ...cluster, close: async () => {} }) }),
  });
const install = (...argv: readonly string[]) => controller('install', '--image', TEST_IMAGE, ...argv);
const imageOf = async () => {
  const { spec } = ((await cluster.get(DEPLOYMENT)) ?? {}) as { readonly spec?: JsonObject };
  return JSON.stringify(spec).match(/"image":"([^"]*)"/)?.[1];
};

describe('controller install', () => {
  it('installs all objects once, and updates the image', async () => {
    const first = await install();
    expect([first.code, first.stdout]).toEqual([
      0,
      expect.stringMatching(/^The objects of the controller are applied\. Wait for its pods: kubectl .*\n$/),
    ]);
    expect(first.stderr).toContain('created Deployment kubeletadm-system/kubeletadm-controller');
    const second = await install();
    expect([second.code, second.stdout]).toEqual([0, 'Nothing to do: the objects of the controller are up to date.\n']);
    const dry = await controller('install', '--image', OTHER_IMAGE, '--dry-run', '--exit-code');
    expect([dry.code, dry.stdout]).toEqual([6, expect.stringContaining('~ Deployment kubeletadm-system/kubeletadm-controller')]);
    const shown = await controller('install', '--image', OTHER_IMAGE, '--dry-run', '--diff');
    expect(shown.stdout).toContain('kubeletadm-controller: its spec.template.spec.containers[0].image differs');
    expect(await imageOf()).toBe(TEST_IMAGE);
    expect((await controller('install', '--image', OTHER_IMAGE)).code).toBe(0);
    expect(await imageOf()).toBe(OTHER_IMAGE);
  });

  it('keeps labels of others, and repairs rules that were changed', async () => {
    await install();
    const namespace = { apiVersion: 'v1', kind: 'Namespace', name: 'kubeletadm-system' };
    await cluster.patch(namespace, 'merge', { metadata: { labels: { team: 'a', 'pod-security.kubernetes.io/enforce': null } } });
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'kubeletadm:controller' };
    await cluster.patch(role, 'merge', { rules: [] });
    expect((await install()).code).toBe(0);
    expect((await cluster.get(namespace))?.metadata.labels).toMatchObject({
      team: 'a',
      'pod-security.kubernetes.io/enforce': 'restricted',
    });
    expect((await cluster.get(role))?.rules).not.toEqual([]);
  });

  it('prints the manifests in a dry run', async () => {
    const yaml = await install('--dry-run', '-o', 'yaml');
    const expected = JSON.parse(JSON.stringify(controllerObjects(TEST_IMAGE)));
    expect(parseAllDocuments(yaml.stdout).map((document) => document.toJS())).toEqual(expected);
    expect(JSON.parse((await install('--dry-run', '-o', 'json')).stdout)).toEqual({ apiVersion: 'v1', kind: 'List', items: expected });
    expect(await cluster.get(DEPLOYMENT)).toBeNull();
  });

  it.each([
    ['no image', [], /requires --image/],
    ['an image without a digest', ['--image', 'registry.example.com/kubeletadm:1.0'], /the image has no digest/],
    ['an image and a host', ['--image', TEST_IMAGE, '--host', 'cp1'], /--image cannot be combined with --host or --fleet/],
    [
      'the name of a Node for two hosts',
      ['--host', 'cp1', '--host', 'cp2', '--node-name', 'cp1'],
      /--node-name requires exactly one --host/,
    ],
    ['an incomplete digest', ['--image', 'registry.example.com/kubeletadm@sha256:abc'], /the digest is not sha256: and 64 hexadecimal/],
  ])('refuses %s', async (_, argv, message) => {
    const { code, stderr } = await controller('install', ...argv);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });
});

describe('a controller that runs on hosts', () => {
  beforeEach(async () => {
    for (const object of hostControllerObjects(['kubeletadm:controller:cp1', 'kubeletadm:controller:cp2'])) await cluster.create(object);
  });

  it('is not installed in the cluster too', async () => {
    const { code, stderr } = await install();
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(
        /is already installed on hosts: cp1, cp2\. Remove it there first: kubeletadm controller uninstall --host cp1 --host cp2\. \[CONTROLLER_INSTALLED\]/,
      ),
    ]);
    expect(await cluster.get(DEPLOYMENT)).toBeNull();
  });

  it('loses its rights by controller uninstall, which names the hosts', async () => {
    expect((await controller('uninstall')).stdout).toContain(
      'Hosts keep the program, which has no rights any more: cp1, cp2. Remove it: kubeletadm controller uninstall --host HOST\n',
    );
  });
});

describe('controller uninstall', () => {
  const ROLLOUT = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout' };

  it('leaves the namespace, the definition and the rollouts, and names them', async () => {
    await install();
    await cluster.create({ ...ROLLOUT, metadata: { name: 'edge' }, spec: { nodeSelector: {}, payload: { overlay: {} } } });
    const { code, stdout } = await controller('uninstall');
    expect([code, stdout]).toEqual([
      0,
      'Nodes keep their configuration. Namespace kubeletadm-system stays, with the ConfigMaps of the nodes.\nCustomResourceDefinition kubeletconfigrollouts.kubeletadm.dev stays, with the rollouts edge.\n',
    ]);
    for (const object of controllerObjects(TEST_IMAGE)) {
      const { kind, apiVersion, metadata } = object;
      const found = await cluster.get({
        kind,
        apiVersion,
        name: metadata.name,
        ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      });
      expect([kind, metadata.name, found !== null]).toEqual([kind, metadata.name, kind === 'Namespace' || kind === DEFINITION.kind]);
    }
    expect((await controller('uninstall')).stdout).toMatch(/^Nothing to do: no controller is installed\.\n/);
  });

  it('keeps the definition of a rollout that this version cannot read', async () => {
    await install();
    const definition = JSON.parse(JSON.stringify(await cluster.get(DEFINITION)));
    definition.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.onSuccess = { type: 'string' };
    await cluster.update(definition);
    await cluster.create({ ...ROLLOUT, metadata: { name: 'newer' }, spec: { nodeSelector: {}, payload: { overlay: {} }, onSuccess: 'x' } });
    expect((await controller('uninstall')).stdout).toMatch(/stays, with the rollouts newer\.$/m);
    const { code, stderr } = await controller('uninstall', '--crd');
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/would be deleted with their CustomResourceDefinition: newer.*ROLLOUTS_EXIST/),
    ]);
    expect(await cluster.get(DEFINITION)).not.toBeNull();
  });

  it('names the rollouts and nodes that wait for a controller', async () => {
    await install();
    const spec = { nodeSelector: {}, payload: { overlay: {} }, deletionPolicy: 'Reset' };
    await cluster.create({ ...ROLLOUT, metadata: { name: 'edge', finalizers: ['kubeletadm.dev/reset'] }, spec });
    for (const [name, run] of Object.entries({ n1: 'rollout-1', n2: 'run-1' })) {
      const annotations = { 'kubeletadm.dev/cordoned-by': JSON.stringify({ run }) };
      await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name, annotations }, spec: { unschedulable: true } });
    }
    expect((await controller('uninstall')).stdout.split('\n').slice(2)).toEqual([
      'Without a controller, kubectl delete of these rollouts does not finish (deletionPolicy: Reset): edge.',
      'Nodes that a rollout has cordoned stay cordoned; uncordon them: kubeletadm uncordon n1',
      '',
    ]);
  });

  it('deletes the definition with --crd, but not while rollouts exist', async () => {
    await install();
    await cluster.create({ ...ROLLOUT, metadata: { name: 'edge' }, spec: { nodeSelector: {}, payload: { overlay: {} } } });
    const refused = await controller('uninstall', '--crd');
    expect([refused.code, refused.stderr]).toEqual([
      3,
      expect.stringMatching(/would be deleted with their CustomResourceDefinition: edge.*ROLLOUTS_EXIST/),
    ]);
    expect(await cluster.get(DEPLOYMENT)).not.toBeNull();
    await cluster.delete({ ...ROLLOUT, name: 'edge' });
    expect((await controller('uninstall', '--crd')).code).toBe(0);
    expect([await cluster.get(DEFINITION), await cluster.get(DEPLOYMENT)]).toEqual([null, null]);
    expect((await controller('uninstall')).code).toBe(0);
  });
});
