import { describe, expect, it } from 'vitest';
import { joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { hostToJoin, optionsToJoin } from '../../../support/host-to-join.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';

/** Joins a worker whose configuration has a taint. @returns the keys of the taints of its Node */
async function taintsAfterJoin(flags: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const clock = fakeClock();
  const { cluster, host } = hostToJoin(clock);
  const [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
  const kubeletExtraArgs = Object.entries(flags).map(([name, value]) => ({ name, value }));
  const nodeRegistration = { taints: [{ key: 'q', effect: 'NoSchedule' as const }], kubeletExtraArgs };
  const options = optionsToJoin({ templates, catalogue, admin: cluster }, { nodeRegistration });
  await runWorkflow(joinWorkflow, { host, cluster, clock, reporter: recordingReporter() }, options, { dryRun: false, skipPhases: [] });
  const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'w1' });
  const { taints = [] } = (node?.spec ?? {}) as { readonly taints?: readonly { readonly key: string }[] };
  return taints.map(({ key }) => key).filter((key) => !key.startsWith('node.kubernetes.io/'));
}

describe('the taints of a joining worker', () => {
  it('are added to its Node by an administrator', async () => {
    expect(await taintsAfterJoin({})).toEqual(['q']);
  });

  it('are not added if the kubelet flag register-with-taints replaces them, as with kubeadm', async () => {
    expect(await taintsAfterJoin({ 'register-with-taints': 'p=v:NoSchedule' })).toEqual([]);
  });
});
