import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseSource } from '../../../../src/codec/source.ts';
import type { Operation } from '../../../../src/host/operation/operation.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { planWorkflow, type Workflow } from '../../../../src/host/run-workflow.ts';
import { type CleanupNodeInput, cleanupNode } from '../../../../src/kubeadm/phases/cleanup-node.ts';
import type { NodeOverlay } from '../../../../src/kubeadm/render/config-drop-ins.ts';
import { NodeGroups } from '../../../../src/kubeadm/render/node-groups.ts';
import { type JoinOptions, joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { type UpgradeNodeOptions, upgradeNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade/upgrade-node.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { layerRunningConfig } from '../../../../src/kubelet/effective/running-config.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import type { FakeCluster } from '../../../support/fake-cluster.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { HOST_COMMANDS, hostToJoin, NO_SETTINGS_OF_NODE, optionsToJoin, regular } from '../../../support/host-to-join.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';
import { withRun } from '../../../support/with-run.ts';

const CONFIG = '/var/lib/kubelet/config.yaml';
const FLAGS = '/var/lib/kubelet/kubeadm-flags.env';
const DIR = '/etc/kubernetes/kubelet.conf.d';
const README = `${DIR}/README.kubeletadm`;
let templates: Awaited<ReturnType<typeof loadTemplates>>;
let catalogue: Awaited<ReturnType<typeof loadCatalogue>>;
beforeAll(async () => {
  [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
});

const clock = fakeClock();
let cluster: FakeCluster;
let host: FakeHost;
let reporter: ReturnType<typeof recordingReporter>;

beforeEach(async () => {
  reporter = recordingReporter();
  ({ cluster, host } = hostToJoin(clock));
});

const overlay = (fields: string, layer?: string): NodeOverlay => {
  const text = `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${fields}\n`;
  const [document] = parseSource(text, '/home/me/fleet.yaml').documents;
  if (document === undefined) throw new Error('no document');
  return layer === undefined ? document : { ...document, layer };
};

const joinOptions = (overlays: readonly NodeOverlay[], more: Partial<JoinOptions> = {}): JoinOptions =>
  optionsToJoin({ templates, catalogue, admin: cluster }, { overlays, configDir: true, ...more });

const contextOf = (): PhaseContext => ({ host, cluster, clock, reporter });
const RUN = { dryRun: false, skipPhases: [] };
const join = (overlays: readonly NodeOverlay[], more: Partial<JoinOptions> = {}) =>
  runWorkflow(joinWorkflow, contextOf(), joinOptions(overlays, more), RUN);
const planJoin = (overlays: readonly NodeOverlay[], more: Partial<JoinOptions> = {}) =>
  planWorkflow(joinWorkflow, contextOf(), joinOptions(overlays, more), RUN);
const changesOf = async (planned: ReturnType<typeof planJoin>) => (await planned).host.phases.flatMap(({ plan }) => plan.changes);
const configDropIns = (): readonly string[] => [...host.files.keys()].filter((path) => path.startsWith(`${DIR}/`)).toSorted();
const upgradeOptions = (more: Partial<UpgradeNodeOptions> = {}): UpgradeNodeOptions => ({
  ...NO_SETTINGS_OF_NODE,
  templates,
  catalogue,
  groups: new NodeGroups(),
  overlays: null,
  settings: null,
  patches: null,
  ignoreSavedSettings: false,
  kubeletHealthCheckMs: 10_000,
  trust: null,
  nodeName: null,
  ...more,
});
const upgrade = (more: Partial<UpgradeNodeOptions> = {}) => runWorkflow(upgradeNodeWorkflow, contextOf(), upgradeOptions(more), RUN);

const BASELINE = overlay('maxPods: 70\nimageGCHighThresholdPercent: 84', 'baseline');
const EDGE = overlay('maxPods: 60\nregistryBurst: 20', 'group edge');
const HOST = overlay('podPidsLimit: 500\nhealthzPort: 10333', 'host');
const ALL = [BASELINE, EDGE, HOST];
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

/** What the kubelet of the host reads from its files. */
const effective = () => {
  const dropIns = configDropIns()
    .filter((path) => path.endsWith('.conf'))
    .map((path) => ({ path, text: host.text(path) }));
  const hasFlag = host.text(FLAGS).includes(`--config-dir=${DIR}`);
  const configFile = { path: CONFIG, text: host.text(CONFIG) };
  return layerRunningConfig({ catalogue, minor: 36, configFile, dynamicConfig: null, dropIns: hasFlag ? dropIns : [], flags: [] }).layered;
};

describe('layers as drop-in files of --config-dir', () => {
  it('are files of their own over the config.yaml that kubeadm would write', async () => {
    await join([], { configDir: false });
    const plain = host.text(CONFIG);
    await join(ALL, {
      settings: ['registryPullQPS=7'],
      declared: [{ path: ['resolvConf'], value: '/etc/own.conf', source: 'fleet.yaml:1:1' }],
    });
    expect(configDropIns()).toEqual([
      `${DIR}/10-kubeletadm-baseline.conf`,
      `${DIR}/20-kubeletadm-group-edge.conf`,
      `${DIR}/50-kubeletadm-host.conf`,
      `${DIR}/60-kubeletadm-node.conf`,
      `${DIR}/70-kubeletadm-set.conf`,
      README,
    ]);
    expect(host.text(`${DIR}/20-kubeletadm-group-edge.conf`)).toBe(`${HEADER}maxPods: 60\nregistryBurst: 20\n`);
    expect(host.text(`${DIR}/60-kubeletadm-node.conf`)).toBe(`${HEADER}resolvConf: /etc/own.conf\n`);
    expect(host.text(`${DIR}/70-kubeletadm-set.conf`)).toBe(`${HEADER}registryPullQPS: 7\n`);
    expect(host.text(README)).toContain('\n20-kubeletadm-group-edge.conf: fleet.yaml\n');
    // Other programs read the port of healthz from config.yaml.
    expect(host.text(CONFIG)).toBe(
      plain.replace(/^(healthzBindAddress: .*\n)?/m, (line) => line).replace('healthzPort: 10248', 'healthzPort: 10333'),
    );
    expect(host.text(`${DIR}/50-kubeletadm-host.conf`)).toBe(`${HEADER}podPidsLimit: 500\n`);
    expect(host.text(FLAGS)).toContain(`--config-dir=${DIR}`);
  });

  it('give the kubelet the same configuration as one file', async () => {
    await join(ALL, { configDir: false });
    const merged = effective().config;
    await join(ALL);
    expect(effective().config).toEqual(merged);
    expect(effective().history.get('maxPods')?.at(-1)?.origin).toEqual({
      layer: 'drop-in',
      source: `${DIR}/20-kubeletadm-group-edge.conf:3`,
    });
  });

  it('are unchanged in a second run, and in an upgrade with the saved settings', async () => {
    await join(ALL, { settings: ['registryPullQPS=7'] });
    expect(await changesOf(planJoin(ALL, { settings: ['registryPullQPS=7'] }))).toEqual([]);
    const { host: planned } = await planWorkflow(upgradeNodeWorkflow, contextOf(), upgradeOptions(), RUN);
    expect(planned.phases.flatMap(({ plan }) => plan.changes)).toEqual([]);
  });

  it('report a move from config.yaml as safe, and a changed field at its drop-in file', async () => {
    await join(ALL, { configDir: false });
    const moved = await changesOf(planJoin(ALL));
    expect(moved).toContainEqual(
      expect.objectContaining({ kind: 'write-file', path: `${DIR}/10-kubeletadm-baseline.conf`, impact: 'safe', fields: [] }),
    );
    expect(moved.map((change) => ('impact' in change ? change.impact : null))).not.toContain('unsafe');
    await join(ALL);
    const changed = await changesOf(planJoin([BASELINE, EDGE, overlay('podPidsLimit: 400\nhealthzPort: 10333', 'host')]));
    expect(changed.filter((change) => change.kind === 'write-file' && !change.path.startsWith('/var/lib/kubelet/kubeletadm'))).toEqual([
      expect.objectContaining({
        path: `${DIR}/50-kubeletadm-host.conf`,
        fields: [{ field: 'podPidsLimit', before: 500, after: 400, impact: 'new-pods-only' }],
      }),
    ]);
  });

  it('are removed with their layer, which restores the fields of the layers below', async () => {
    await join(ALL);
    const changes = await changesOf(planJoin([BASELINE, HOST]));
    expect(changes).toContainEqual(
      expect.objectContaining({
        kind: 'remove-file',
        path: `${DIR}/20-kubeletadm-group-edge.conf`,
        fields: expect.arrayContaining([expect.objectContaining({ field: 'maxPods', before: 60, after: 70 })]),
      }),
    );
    await join([BASELINE, HOST]);
    expect(configDropIns()).not.toContain(`${DIR}/20-kubeletadm-group-edge.conf`);
    expect(effective().config.maxPods).toBe(70);
    expect(await changesOf(planJoin([BASELINE, HOST]))).toEqual([]);
  });

  it.each([
    ['the removal of a layer', [BASELINE, HOST], {}],
    ['the end of the setting', ALL, { configDir: false }],
  ])('are completed after a run that was killed before any operation of %s', async (_, overlays, more) => {
    await join(overlays, more);
    const desired = effective().config;
    await join(ALL);
    const count = (await changesOf(planJoin(overlays, more))).length;
    expect(count).toBeGreaterThan(3);
    for (let done = 1; done < count; done++) {
      await join(ALL);
      const changes = await changesOf(planJoin(overlays, more));
      await host.perform(changes.slice(0, done) as readonly Operation[]);
      const isRestart = ({ kind }: { readonly kind: string }): boolean => kind === 'restart-unit';
      const others = await changesOf(planJoin(overlays, more));
      expect(others.some(isRestart), `killed after ${done}`).toBe(!changes.slice(0, done).some(isRestart));
      await join(overlays, more);
      expect(effective().config).toEqual(desired);
      expect(await changesOf(planJoin(overlays, more))).toEqual([]);
    }
  });

  it('are merged into config.yaml again when the setting is off', async () => {
    await join(ALL, { configDir: false });
    const [config, flags] = [host.text(CONFIG), host.text(FLAGS)];
    await join(ALL);
    await join(ALL, { configDir: false });
    expect([host.text(CONFIG), host.text(FLAGS), configDropIns()]).toEqual([config, flags, []]);
  });

  it('are merged by upgrade node, which keeps them without an option', async () => {
    await join(ALL);
    const merged = effective().config;
    await upgrade({ settings: ['registryPullQPS=7'] });
    expect(host.text(`${DIR}/70-kubeletadm-set.conf`)).toBe(`${HEADER}registryPullQPS: 7\n`);
    await upgrade({ configDir: false, settings: [] });
    expect(configDropIns()).toEqual([]);
    expect(host.text(FLAGS)).not.toContain('config-dir');
    expect(effective().config).toEqual(merged);
    await upgrade({ configDir: true });
    expect(configDropIns()).toHaveLength(4);
    expect(effective().config).toEqual(merged);
  });

  it('leave the drop-in files of the administrator, which win by their names', async () => {
    const own = `${DIR}/90-local.conf`;
    host.files.set(own, regular(`${HEADER}maxPods: 33\n`));
    await join(ALL);
    expect(effective().config.maxPods).toBe(33);
    expect(await changesOf(planJoin(ALL))).toEqual([]);
    const layers = [BASELINE, overlay('maxPods: 50\nregistryBurst: 20', 'group edge'), HOST];
    await expect(planJoin(layers)).rejects.toMatchObject({
      code: 'FieldNotInForce',
      message: expect.stringContaining(`maxPods: 50 is overridden by ${own}:3, with 33`),
    });
    // The new value has no effect, so it is no changed field.
    const changed = await changesOf(planJoin(layers, withRun({ ignorePreflightErrors: ['FieldNotInForce'] })));
    expect(changed).toContainEqual(expect.objectContaining({ path: `${DIR}/20-kubeletadm-group-edge.conf`, fields: [] }));
    await join(ALL, { configDir: false });
    expect(configDropIns()).toEqual([own]);
  });

  it('are removed by reset, unlike those of the administrator', async () => {
    const own = `${DIR}/90-local.conf`;
    host.files.set(own, regular(`${HEADER}maxPods: 33\n`));
    await join(ALL);
    const present = configDropIns();
    const workflow: Workflow<CleanupNodeInput, CleanupNodeInput> = {
      name: 'reset',
      phases: [cleanupNode.select((input) => input)],
      prepare: async (_, input) => ({ input, warnings: [], refusals: [] }),
    };
    const input = {
      certificatesDir: '/etc/kubernetes/pki',
      criSocket: 'unix:///var/run/containerd/containerd.sock',
      cleanupTmpDir: false,
      etcdDataDir: null,
      unmountFlags: [],
      podsMayStay: true,
    };
    const { host: planned } = await planWorkflow(workflow, contextOf(), input, RUN);
    const removed = planned.phases
      .flatMap(({ plan }) => plan.changes)
      .flatMap((change) => (change.kind === 'remove-file' ? [change.path] : []));
    expect(removed.filter((path) => path.startsWith(DIR)).toSorted()).toEqual(present.filter((path) => path !== own));
  });

  it('refuse a kubelet that reads none', async () => {
    const commands = { ...HOST_COMMANDS, kubelet: { stdout: 'Kubernetes v1.29.3\n' }, date: { stdout: '1\n' } };
    host = fakeHost({
      name: 'old',
      units: { kubelet: fakeUnit({ activeState: 'inactive' }) },
      files: Object.fromEntries(host.files),
      commands,
    });
    await expect(planJoin(ALL)).rejects.toMatchObject({
      exitCode: 3,
      problems: [
        {
          host: 'old',
          code: 'CONFIG_DIR_UNSUPPORTED',
          message: expect.stringContaining('kubelet 1.29 reads no drop-in configuration files'),
        },
      ],
    });
  });

  it('leave fields in config.yaml to which a drop-in file would give another value', async () => {
    const overlays = [overlay('maxPods: 70\nevictionHard: {memory.available: 5%}\nrotateCertificates: false', 'baseline')];
    const more: Partial<JoinOptions> = {
      patches: [{ source: 'kubeletconfiguration.yaml', type: 'merge', patch: { maxPods: 44 } }],
      settings: ['rotateCertificates=null', 'serializeImagePulls=false'],
    };
    await join(overlays, { ...more, configDir: false });
    const merged = effective().config;
    await join(overlays, more);
    expect(effective().config).toEqual(merged);
    expect(host.text(CONFIG)).toMatch(/^evictionHard:\n {2}memory.available: 5%\n(.*\n)*maxPods: 44\n/m);
    expect(configDropIns()).toEqual([`${DIR}/70-kubeletadm-set.conf`, README]);
  });

  it.each<[string, Partial<JoinOptions>, object]>([
    [
      'another directory of drop-in files',
      { nodeRegistration: { kubeletExtraArgs: [{ name: 'config-dir', value: '/etc/other.d' }] } },
      { code: 'CONFIG_DIR_CONFLICT', message: expect.stringContaining('--config-dir=/etc/other.d') },
    ],
    [
      'an empty list that the kubelet would replace by its default',
      { patches: [{ source: 'kubeletconfiguration.yaml', type: 'merge', patch: { enforceNodeAllocatable: [] } }] },
      { code: 'CONFIG_DIR_DIFFERS', message: expect.stringContaining('enforceNodeAllocatable (patch: kubeletconfiguration.yaml)') },
    ],
    [
      'more layers than numbers',
      { overlays: Array.from({ length: 31 }, (_, i) => overlay(`maxPods: ${100 + i}`, `host`)) },
      { code: 'CONFIG_DIR_DIFFERS', message: expect.stringContaining('too many layers') },
    ],
  ])('refuse %s', async (_, more, problem) => {
    await expect(planJoin(ALL, more)).rejects.toMatchObject({ exitCode: 2, problems: [problem] });
    expect(host.performed).toEqual([]);
  });

  it('drop a field that --set removes from the layers', async () => {
    await join(ALL, { settings: ['podPidsLimit=null'] });
    expect(configDropIns()).not.toContain(`${DIR}/50-kubeletadm-host.conf`);
    expect(effective().config.podPidsLimit).toBe(-1);
  });
});
