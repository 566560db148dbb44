import { startLabAgents } from '../../lab/lab-agents.ts';
import { AGENT_NAMESPACE } from '../../src/kube/agent-namespace.ts';
import { ALLOW_POD_LOSS_ANNOTATION, CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { startBenchLab } from '../bench-lab.ts';
import { median, until, validate } from './assess.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 15);
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

/**
 * The time from an assignment to the restarted kubelet, and from the first sign of a failure to the rollback.
 */
export async function benchSpeed(): Promise<void> {
  const { lab, services, cluster, close } = await startBenchLab();
  const agents = await startLabAgents(services, { lab, names: ['node2'], trialMs: 1_000, failed: () => undefined });
  await agents.waitForReports();
  const host = lab.hosts[1] as (typeof lab.hosts)[number];
  const condition = async (): Promise<string> => {
    const { conditions = [] } = ((await cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'node2' }))?.status ?? {}) as {
      readonly conditions?: readonly { readonly type: string; readonly reason: string }[];
    };
    return conditions.find(({ type }) => type === 'KubeletConfigOk')?.reason ?? '';
  };
  let serial = 0;
  /** The time of the assignment, and the number of kubelet starts at that time. */
  const assign = async (text: string): Promise<{ readonly at: number; readonly starts: number }> => {
    const name = `bench-${serial++}`;
    await cluster.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: AGENT_NAMESPACE },
      data: { kubelet: OVERLAY + text },
      immutable: true,
    });
    const source = JSON.stringify({ configMap: { kubeletConfigKey: 'kubelet', name, namespace: AGENT_NAMESPACE } });
    const [at, starts] = [performance.now(), host.kubeletStarts()];
    await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'node2' }, 'merge', {
      metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: source, [ALLOW_POD_LOSS_ANNOTATION]: `${AGENT_NAMESPACE}/${name}/kubelet` } },
    });
    return { at, starts };
  };
  const taken: number[] = [];
  const back: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    const { at, starts } = await assign(`maxPods: ${120 + i}\n`);
    taken.push((await until('a restart', () => host.kubeletStarts() > starts)) - at);
    await until('Good', async () => (await condition()) === 'Good');
    if (i % 3 !== 0) continue;
    const bad = await assign(`maxPods: ${500 + i}\ntlsCertFile: /no/such.crt\ntlsPrivateKeyFile: /no/such.key\n`);
    // The kubelet exits at startup: that is the first sign. The end is the restart with the good
    // configuration.
    const sign = await until('the first sign', () => host.kubeletStarts() > bad.starts);
    back.push((await until('FallenBack', async () => (await condition()) === 'FallenBack')) - sign);
  }
  validate(`assignment to kubelet restarted with it, median of ${taken.length}`, median(taken) / 1000, 2, 's');
  validate(`first sign to kubelet back with the good one, worst of ${back.length}`, Math.max(...back) / 1000, 5, 's');
  await agents.close();
  await close();
}
