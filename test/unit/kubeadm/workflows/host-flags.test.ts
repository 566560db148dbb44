import { beforeEach, describe, expect, it } from 'vitest';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { planWorkflow } from '../../../../src/host/run-workflow.ts';
import { applyClusterDefaults } from '../../../../src/kubeadm/config/defaults.ts';
import type { NodeRegistration } from '../../../../src/kubeadm/config/model.ts';
import { NODE_SETTINGS_PATH } from '../../../../src/kubeadm/node-settings/node-settings.ts';
import { type JoinOptions, joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { designFirstNode } from '../../../../src/kubeadm/workflows/node/design-first-node.ts';
import { observeNode } from '../../../../src/kubeadm/workflows/node/observe-node.ts';
import { upgradeNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade/upgrade-node.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import type { FakeCluster } from '../../../support/fake-cluster.ts';
import type { FakeHost } from '../../../support/fake-host.ts';
import { runs } from '../../../support/fake-units.ts';
import { hostToJoin, optionsToJoin, regular } from '../../../support/host-to-join.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';
import { withRun } from '../../../support/with-run.ts';

const [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const FLAGS = '/var/lib/kubelet/kubeadm-flags.env';
const UNIT = '/etc/systemd/system/kubelet.service';
const DROP_IN = `${UNIT}.d/10-kubeadm.conf`;
const ENV = '/etc/kubernetes/kubelet.env';
const OWN = '/etc/kubernetes/own.yaml';
const RUN = { dryRun: false, skipPhases: [] };
const clock = fakeClock();

let cluster: FakeCluster;
let host: FakeHost;
let reporter: ReturnType<typeof recordingReporter>;

/** Replaces the unit of the host by one of an administrator, which starts a healthy kubelet with these flags. */
function ownUnit(flags: string): void {
  host.files.set(UNIT, regular(`[Service]\nEnvironmentFile=-${ENV}\nExecStart=/usr/bin/kubelet --config=${OWN} $KUBELET_ARGS\n`));
  host.files.set(ENV, regular(`KUBELET_ARGS='--kubeconfig=/etc/kubernetes/kubelet.conf ${flags}'\n`));
  host.files.set(OWN, regular(`${HEADER}maxPods: 50\n`));
  const unit = host.units.get('kubelet');
  if (unit === undefined) throw new Error('no unit');
  unit.onStart(unit);
  unit.state = { ...unit.state, unitFileState: 'enabled', fragmentPath: UNIT };
  unit.onStart = (started) => {
    runs(started);
    started.state = { ...started.state, dropInPaths: host.files.has(DROP_IN) ? [DROP_IN] : [] };
  };
}

const options = (nodeRegistration: NodeRegistration, more: Partial<JoinOptions> = {}): JoinOptions =>
  optionsToJoin(
    { templates, catalogue, admin: null },
    { nodeRegistration, ...withRun({ podLoss: 'ignore' }), skipPreflight: true, ...more },
  );
const context = (): PhaseContext => ({ host, cluster, clock, reporter });
const plan = (registration: NodeRegistration = {}, more: Partial<JoinOptions> = {}) =>
  planWorkflow(joinWorkflow, context(), options(registration, more), RUN);
const join = (registration: NodeRegistration = {}) => runWorkflow(joinWorkflow, context(), options(registration), RUN);
const flagsIn = ({ host: planned }: Awaited<ReturnType<typeof plan>>): string => {
  const changes = planned.phases.flatMap((phase) => phase.plan.changes);
  const change = changes.find((one) => 'path' in one && one.path === FLAGS);
  return change?.kind === 'write-file' ? String(change.content) : 'no change';
};

beforeEach(() => {
  ({ cluster, host } = hostToJoin(clock));
  reporter = recordingReporter();
});

describe("the flags of a host's own unit", () => {
  it('are kept under the declared flags, except those of kubeadm', async () => {
    ownUnit('--node-ip=10.0.0.1 --v=4 --node-labels=pool=edge --bootstrap-kubeconfig=/etc/boot.conf');
    expect(flagsIn(await plan({ kubeletExtraArgs: [{ name: 'v', value: '2' }] }))).toBe(
      'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1 --node-labels=pool=edge --v=2"\n',
    );
  });

  it('decide the name of the Node and the CRI socket, unless these are declared', async () => {
    ownUnit('--hostname-override=Edge-1 --container-runtime-endpoint=unix:///run/own.sock');
    const planned = await plan();
    expect(flagsIn(planned)).toBe('KUBELET_KUBEADM_ARGS="--hostname-override=Edge-1"\n');
    expect(planned.host.own).toMatchObject({ node: 'edge-1' });
    const changes = planned.host.phases.flatMap((phase) => phase.plan.changes);
    expect(changes).toContainEqual(
      expect.objectContaining({ content: expect.stringContaining('containerRuntimeEndpoint: "unix:///run/own.sock"') }),
    );
    const declared = await plan({ name: 'w1', criSocket: 'unix:///var/run/containerd/containerd.sock' });
    expect(flagsIn(declared)).toBe('KUBELET_KUBEADM_ARGS=""\n');
  });

  it('are dropped by name, which shows the impact', async () => {
    ownUnit('--node-ip=10.0.0.1 --v=4');
    const planned = await plan({ droppedFlags: ['node-ip', 'cgroup-root'] });
    expect(flagsIn(planned)).toBe('KUBELET_KUBEADM_ARGS="--v=4"\n');
    const fields = planned.host.phases
      .flatMap((phase) => phase.plan.changes)
      .flatMap((change) => ('fields' in change ? change.fields : []));
    expect(fields).toContainEqual({ field: '--node-ip', before: '10.0.0.1', after: null, impact: 'drain' });
  });

  it('stay after the takeover: the second run plans nothing', async () => {
    ownUnit('--node-ip=10.0.0.1 --system-reserved=cpu=100m,memory="1 Gi"');
    await join();
    const text = 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1 --system-reserved=\\"cpu=100m,memory=1 Gi\\""\n';
    expect(host.text(FLAGS)).toBe(text);
    expect(host.text(NODE_SETTINGS_PATH)).toContain('keptFlags:\n  - name: node-ip\n    value: 10.0.0.1\n');
    expect((await plan()).host.phases.flatMap((phase) => phase.plan.changes)).toEqual([]);
    await join({ droppedFlags: ['node-ip'] });
    expect(host.text(FLAGS)).not.toContain('node-ip');
    expect(host.text(NODE_SETTINGS_PATH)).not.toContain('node-ip');
    await join();
    expect(host.text(FLAGS)).not.toContain('node-ip');
  });

  it('stay in an upgrade of the node, and in the join after it', async () => {
    ownUnit('--node-ip=10.0.0.1');
    await join();
    const [flags, settings] = [host.text(FLAGS), host.text(NODE_SETTINGS_PATH)];
    expect(flags).toContain('node-ip');
    const upgrade = { ...options({}), overlays: null, settings: null, patches: null, ignoreSavedSettings: false, nodeName: null };
    await runWorkflow(upgradeNodeWorkflow, context(), upgrade, RUN);
    expect([host.text(FLAGS), host.text(NODE_SETTINGS_PATH)]).toEqual([flags, settings]);
    expect((await plan()).host.phases.flatMap((phase) => phase.plan.changes)).toEqual([]);
  });

  it('are kept by init', async () => {
    ownUnit('--node-ip=10.0.0.1');
    const first = { ...options({}), kubelet: null };
    const settings = { cluster: applyClusterDefaults({}), controlPlaneMinor: 36, running: cluster };
    const { start } = await designFirstNode(context(), first, { node: await observeNode(context(), first), ...settings });
    expect(start.files.find(({ path }) => path === FLAGS)?.content).toBe('KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\n');
  });

  it('stay when a run is killed after any of its changes', async () => {
    ownUnit('--node-ip=10.0.0.1');
    await join();
    const [flags, settings, changes] = [host.text(FLAGS), host.text(NODE_SETTINGS_PATH), host.performed.length];
    expect(flags).toContain('node-ip');
    expect(changes).toBeGreaterThan(5);
    for (let at = 1; at < changes; at++) {
      ({ cluster, host } = hostToJoin(clock));
      ownUnit('--node-ip=10.0.0.1');
      // A killed program does not roll back.
      for (let later = at; later < changes + 10; later++) host.failAt(later);
      await expect(join()).rejects.toThrow();
      const [files, state] = [[...host.files], host.units.get('kubelet')?.state];
      ({ cluster, host } = hostToJoin(clock));
      ownUnit('');
      for (const [path, file] of files) host.files.set(path, file);
      const dropInPaths = state?.needsReload === false && host.files.has(DROP_IN) ? [DROP_IN] : [];
      Object.assign(host.units.get('kubelet') ?? {}, { state: { ...state, dropInPaths } });
      await join();
      expect([host.text(FLAGS), host.text(NODE_SETTINGS_PATH)], `after change ${at}`).toEqual([flags, settings]);
    }
  });

  it('are not kept if the kubelet no longer has them, or their value can be secret', async () => {
    ownUnit('--pod-infra-container-image=pause --manifest-url-header=a:b');
    const { warnings, ...planned } = await plan();
    expect(flagsIn({ warnings, ...planned })).toBe('KUBELET_KUBEADM_ARGS=""\n');
    expect(warnings.filter(({ code }) => code === 'KUBELET_FLAG_DROPPED').map(({ message }) => message)).toEqual([
      `--pod-infra-container-image of KUBELET_ARGS in ${ENV} is not kept: a 1.36 kubelet has no flag --pod-infra-container-image: the flag was removed in 1.35. Remove the flag`,
      `--manifest-url-header of KUBELET_ARGS in ${ENV} is not kept: its value can be secret, and all users can read ${FLAGS}. To keep the flag, move it to KUBELET_EXTRA_ARGS in /etc/default/kubelet`,
    ]);
  });

  it('are not repeated if the unit of kubeadm reads them too', async () => {
    ownUnit('--v=4');
    host.files.set('/etc/default/kubelet', regular('KUBELET_EXTRA_ARGS=--max-pods=90\n'));
    host.files.set(
      UNIT,
      regular(`[Service]\nEnvironmentFile=/etc/default/kubelet\nExecStart=/usr/bin/kubelet --v=4 $KUBELET_EXTRA_ARGS\n`),
    );
    expect(flagsIn(await plan())).toBe('KUBELET_KUBEADM_ARGS="--v=4"\n');
    await expect(plan({ droppedFlags: ['max-pods'] })).rejects.toThrow(
      "--kubelet-extra-args max-pods- has no effect: KUBELET_EXTRA_ARGS in /etc/default/kubelet sets the flag, also with kubeadm's unit",
    );
  });

  it('do not hide a declared field', async () => {
    ownUnit('--max-pods=90');
    await expect(plan({}, { settings: ['maxPods=80'], skipPreflight: false })).rejects.toThrow(
      'the change of maxPods would have no effect',
    );
    await plan({ droppedFlags: ['max-pods'] }, { settings: ['maxPods=80'], skipPreflight: false });
  });

  it('are those of the running kubelet if a script starts it', async () => {
    const argv = ['/usr/bin/kubelet', `--config=${OWN}`, '--node-ip=10.0.0.1'];
    const known = hostToJoin(clock, {
      sh: ([, , script = '']: readonly string[]) =>
        script.includes('/cmdline')
          ? { stdout: `7 1 2\n${argv.join('\0')}\0` }
          : { exitCode: script.includes('command -v systemctl') ? 0 : 1 },
    });
    ({ cluster, host } = known);
    ownUnit('');
    host.files.set(UNIT, regular('[Service]\nExecStart=/opt/start-kubelet.sh\n'));
    expect(flagsIn(await plan())).toBe('KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\n');
  });

  it('are none on a host of kubeadm', async () => {
    await join({ kubeletExtraArgs: [{ name: 'node-ip', value: '10.0.0.1' }] });
    expect(flagsIn(await plan())).toBe('KUBELET_KUBEADM_ARGS=""\n');
  });

  it('have names: a dropped flag that no kubelet has is an error', async () => {
    await expect(plan({ droppedFlags: ['nodeip'] })).rejects.toThrow('--kubelet-extra-args nodeip-: no kubelet has a flag --nodeip');
  });
});
