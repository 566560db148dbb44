import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { planWorkflow } from '../../../../src/host/run-workflow.ts';
import { NodeGroups } from '../../../../src/kubeadm/render/node-groups.ts';
import { prepareUpgrade, type UpgradeNodeOptions, upgradeNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade-node.ts';
import { loadCatalogue } from '../../../../src/kubelet/load-catalogue.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import type { FakeCluster } from '../../../support/fake-cluster.ts';
import type { FakeHost } from '../../../support/fake-host.ts';
import { hostToJoin, NO_SETTINGS_OF_NODE, regular } from '../../../support/host-to-join.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const UNIT = '/usr/lib/systemd/system/kubelet.service';
const OWN = '/etc/own/kubelet.yaml';
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
let templates: Awaited<ReturnType<typeof loadTemplates>>;
let catalogue: Awaited<ReturnType<typeof loadCatalogue>>;
beforeAll(async () => {
  [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
});

const clock = fakeClock();
let cluster: FakeCluster;
let host: FakeHost;
beforeEach(() => {
  ({ cluster, host } = hostToJoin(clock));
});

const optionsOf = (more: Partial<UpgradeNodeOptions>): UpgradeNodeOptions => ({
  ...NO_SETTINGS_OF_NODE,
  templates,
  catalogue,
  groups: new NodeGroups(),
  overlays: null,
  settings: null,
  patches: null,
  ignoreSavedSettings: false,
  podLoss: 'refuse',
  kubeletHealthCheckMs: 10_000,
  trust: null,
  nodeName: null,
  ...more,
});
const contextOf = () => ({ host, cluster, clock, reporter: recordingReporter() });
const upgrade = (more: Partial<UpgradeNodeOptions> = {}) =>
  planWorkflow(upgradeNodeWorkflow, contextOf(), optionsOf(more), { dryRun: false, skipPhases: [] });
const problemsOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AppError)) throw error ?? new Error('the run was not refused');
  return error.problems;
};

describe('upgrade node of a host without /var/lib/kubelet/config.yaml', () => {
  it('names the place of another --config, and writes nothing', async () => {
    host.files.set(UNIT, regular(`[Service]\nExecStart=/usr/bin/kubelet --config=${OWN}\n`));
    host.files.set(OWN, regular(`${HEADER}maxPods: 50\n`));
    const [problem] = await problemsOf(upgrade({ settings: ['maxPods=60'] }));
    expect(problem).toMatchObject({
      code: 'FieldNotInForce',
      message: `preflight: the kubelet would not read /var/lib/kubelet/config.yaml: ${UNIT} sets --config=${OWN}`,
    });
    expect(host.performed).toEqual([]);
  });

  it('keeps the socket of the files that the kubelet reads, or of its flag', async () => {
    const socketOf = async (): Promise<string> => (await prepareUpgrade(contextOf(), optionsOf({}))).input.criSocket;
    host.files.set(UNIT, regular(`[Service]\nExecStart=/usr/bin/kubelet --config=${OWN} --config-dir=/etc/own/conf.d\n`));
    host.files.set(OWN, regular(`${HEADER}containerRuntimeEndpoint: unix:///run/file.sock\n`));
    expect(await socketOf()).toBe('unix:///run/file.sock');
    host.files.set('/etc/own/conf.d', { type: 'directory', mode: 0o755, owner: 'root:root' });
    host.files.set('/etc/own/conf.d/10.conf', regular(`${HEADER}containerRuntimeEndpoint: unix:///run/drop-in.sock\n`));
    expect(await socketOf()).toBe('unix:///run/drop-in.sock');
    const flag = '--container-runtime-endpoint=unix:///run/flag.sock';
    host.files.set(UNIT, regular(`[Service]\nExecStart=/usr/bin/kubelet --config=${OWN} ${flag}\n`));
    expect(await socketOf()).toBe('unix:///run/flag.sock');
  });

  it('refuses a host whose kubelet has no configuration file', async () => {
    const refusal = async () => (await problemsOf(upgrade()))[0];
    expect(await refusal()).toMatchObject({
      code: 'NODE_NOT_JOINED',
      message: '/etc/kubernetes/kubelet.conf does not exist: the host has not joined a cluster',
    });
    host.files.set(UNIT, regular('[Service]\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n'));
    expect(await refusal()).toMatchObject({
      message: '/var/lib/kubelet/config.yaml does not exist: the host has not joined a cluster',
    });
    host.files.set(UNIT, regular(`[Service]\nExecStart=/usr/bin/kubelet --config=${OWN}\n`));
    expect(await refusal()).toMatchObject({
      message: `${OWN}, which the command line of the kubelet names, does not exist: the host has not joined a cluster, or the file was removed`,
    });
  });

  it('refuses a kubelet with flags alone, as it would not read the file', async () => {
    host.files.set(UNIT, regular('[Service]\nExecStart=/usr/bin/kubelet --kubeconfig=/etc/own/kubeconfig\n'));
    host.files.set('/etc/own/kubeconfig', regular(''));
    expect((await problemsOf(upgrade()))[0]).toMatchObject({
      code: 'FieldNotInForce',
      message: 'preflight: the kubelet would not read /var/lib/kubelet/config.yaml: its unit starts it without --config',
    });
  });
});
