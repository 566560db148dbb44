import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../lab/api-server/pki.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { AGENT_NAMESPACE } from '../../src/kube/agent-namespace.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { amountsOf } from '../../src/kubelet/workload/pod.ts';
import { OVERLAY } from '../support/agent-scenarios.ts';
import { imageArchive } from '../support/container-images.ts';
import { type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { type PayloadTarget, payloadTable, type TablePayload } from '../support/payload-table.ts';
import { whyNoKubelet } from '../support/real-apiserver.ts';
import { AGENT_BUNDLE, CGROUP_V1_CONFIG, joinForAgents, type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const missing = whyNoKubelet() ?? whyNoLabHosts();
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node1' } as const;
const PAUSE = 'registry.k8s.io/pause:3.10.2';
const PODS = ['web-1', 'web-2', 'web-3'] as const;
const BOUND_MS = 60_000;
const STATIC = 'static-web-node1';

/** Every payload of the table on a real kubelet with real pods, assigned without the checks of the CLI. */
describe.skipIf(requirement('pods of a real kubelet', missing))('the pods of a real kubelet', () => {
  let cluster: Cluster;
  let lab: LabHosts;
  let close: RealCluster['close'] | undefined;
  let number = 0;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-real-workload-'));
  const conf = join(directory, 'admin.conf');
  const dynamic = (command: string, ...words: readonly string[]): Promise<CliResult> =>
    runCommand(['dynamic', command, 'node1', '--kubeconfig', conf, ...words]);

  beforeAll(async () => {
    ({ cluster, lab, close } = await startRealCluster(1, directory, CGROUP_V1_CONFIG));
    const images = ['3.6', '3.8', '3.10.2'].map((tag) => `registry.k8s.io/pause:${tag}`);
    lab.importImage('node1', imageArchive({ names: images, programs: ['/bin/sleep'], entrypoint: ['sleep', '2147483647'] }));
    // As the kubelet's package does.
    lab.run('node1', 'mkdir -p /etc/kubernetes/manifests');
    await joinForAgents(lab, directory, ['node1']);
    lab.put('node1', '/etc/kubernetes/pki/other.crt', (await createCa()).certPem);
    lab.run('node1', `cat > /etc/kubernetes/manifests/static-web.yaml <<'X'\n${STATIC_POD}X`);
    const dns = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'kube-dns', namespace: 'kube-system' } };
    await cluster.create({ ...dns, spec: { clusterIP: '10.96.0.10', ports: [{ name: 'dns', port: 53, protocol: 'UDP' }] } });
    const enabled = await dynamic('enable', '--ssh-config', lab.sshConfig, '--program', AGENT_BUNDLE, ...AGENT_OPTIONS);
    expect(enabled.code, enabled.stderr).toBe(0);
  }, 900_000);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const podRef = (name: string, namespace = 'default') => ({ apiVersion: 'v1', kind: 'Pod', namespace, name });
  const phaseOf = async (name: string, namespace = 'default'): Promise<unknown> =>
    ((await cluster.get(podRef(name, namespace)))?.status as JsonObject | undefined)?.phase;
  const runs = async (name: string, namespace = 'default'): Promise<boolean> => (await phaseOf(name, namespace)) === 'Running';
  const until = async (what: string, isTrue: () => Promise<boolean>, timeoutMs = BOUND_MS): Promise<void> => {
    for (const end = Date.now() + timeoutMs; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 200)))
      if (await isTrue()) return;
    const journal = lab.run(
      'node1',
      'journalctl -u kubeletadm-agent -n 20 --no-pager -o cat; journalctl -u kubelet -n 3 --no-pager -o cat',
    );
    throw new Error(`never: ${what}; ${JSON.stringify(await condition())}\n${journal}`);
  };
  const condition = async (): Promise<JsonObject> =>
    conditionsOf(await cluster.get(NODE)).find(({ type }) => type === 'KubeletConfigOk') ?? {};
  const createPod = async (name: string): Promise<void> => {
    await cluster.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: {
        nodeName: 'node1',
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 0,
        tolerations: [{ operator: 'Exists' }],
        containers: [{ name: 'c', image: PAUSE, resources: { requests: { cpu: '100m', memory: '64Mi', 'ephemeral-storage': '16Mi' } } }],
      },
    });
  };
  const removePod = async (name: string): Promise<void> => {
    await cluster.delete(podRef(name)).catch(() => null);
    await until(`${name} is removed`, async () => (await cluster.get(podRef(name))) === null);
  };
  /** Assigns like kubectl, so that only the agent decides. */
  const assign = async (name: string | null): Promise<void> => {
    const source = name === null ? null : JSON.stringify({ configMap: { namespace: AGENT_NAMESPACE, name, kubeletConfigKey: 'kubelet' } });
    await cluster.patch(NODE, 'merge', { metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: source } } });
  };
  const hasNoPressure = async (): Promise<boolean> =>
    !conditionsOf(await cluster.get(NODE)).some(({ type, status }) => /Pressure$/.test(String(type)) && status === 'True');
  const isReady = async (): Promise<boolean> =>
    conditionsOf(await cluster.get(NODE)).some(({ type, status }) => type === 'Ready' && status === 'True');
  /** Local configuration, three pods and a static pod, all running. */
  const restore = async (): Promise<void> => {
    await assign(null);
    await until('the local configuration runs', async () => (await condition()).reason === 'Local' && (await isReady()));
    await until('the node is without pressure', hasNoPressure, 400_000);
    for (const name of PODS) {
      if (await runs(name)) continue;
      await removePod(name);
      await createPod(name);
    }
    for (const name of PODS) await until(`${name} runs`, () => runs(name));
    await until('the static pod runs', () => runs(STATIC, 'kube-system'));
  };
  const uids = async (): Promise<readonly unknown[]> =>
    Promise.all(PODS.map(async (name) => (await cluster.get(podRef(name)))?.metadata.uid));

  const target = async (): Promise<PayloadTarget> => {
    const status = ((await cluster.get(NODE))?.status ?? {}) as { readonly capacity?: JsonObject };
    const { cpuMillis, memoryBytes, ephemeralBytes } = amountsOf(status.capacity ?? {});
    return { cpus: cpuMillis / 1000, memoryBytes, ephemeralBytes };
  };

  const only = process.env.KUBELETADM_TABLE === undefined ? /^/ : new RegExp(process.env.KUBELETADM_TABLE);
  const shape = payloadTable({ cpus: 2, memoryBytes: 2 ** 33, ephemeralBytes: 2 ** 36 });
  it.each(
    shape
      .map((entry, index) => [`${entry.effect}: ${entry.text.replaceAll('\n', ', ')}`, index] as const)
      .filter(([title]) => only.test(title)),
  )(
    '%s',
    async (title, index) => {
      await restore();
      const payload = payloadTable(await target())[index] as TablePayload;
      const before = await uids();
      const name = `table-${++number}`;
      await cluster.create({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name, namespace: AGENT_NAMESPACE },
        data: { kubelet: `${OVERLAY}${payload.text}\n` },
        immutable: true,
      });
      const began = Date.now();
      await assign(name);
      const settled = async (): Promise<boolean> => {
        const { reason } = await condition();
        const status = String((await cluster.get(NODE))?.metadata.annotations?.['kubeletadm.dev/config-status']);
        return status.includes(`"${name}"`) && ['Rejected', 'FallenBack', 'Good'].includes(String(reason));
      };
      await until('the agent has decided', settled, BOUND_MS + 30_000);
      const seconds = Math.round((Date.now() - began) / 100) / 10;
      const { reason, message } = await condition();
      process.stderr.write(`TABLE ${seconds} s ${reason} ${title}: ${message}\n`);
      if (payload.effect === 'bad') {
        expect(reason).toMatch(/^(?:Rejected|FallenBack)$/);
        expect(String(message)).toMatch(payload.cause as RegExp);
        expect(seconds).toBeLessThan(60);
        if (reason === 'FallenBack')
          await until('the last configuration runs', async () => /; the kubelet runs /.test(String((await condition()).message)));
        return;
      }
      expect(reason).toBe('Good');
      expect(await uids()).toEqual(before);
      for (const pod of PODS) expect(await runs(pod), pod).toBe(true);
      expect(await runs(STATIC, 'kube-system')).toBe(true);
      await createPod('new');
      await until('a new pod starts', () => runs('new'));
      await removePod('new');
    },
    600_000,
  );
});

function conditionsOf(node: KubeObject | null): readonly JsonObject[] {
  const { conditions = [] } = (node?.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
  return conditions;
}

const AGENT_OPTIONS = ['--spread', '0s', '--trial', '25s', '--allow', 'unsafe'];

const STATIC_POD = `apiVersion: v1
kind: Pod
metadata: {name: static-web, namespace: kube-system}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: ${PAUSE}}
`;
