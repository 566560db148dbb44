import { beforeEach, describe, expect, it } from 'vitest';
import { renderMetaFile } from '../../../../src/dynamic/native/native-store.ts';
import { planWorkflow } from '../../../../src/host/run-workflow.ts';
import { joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { type UpgradeNodeOptions, upgradeNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade/upgrade-node.ts';
import { ASSIGNED_BY_ANNOTATION, formatAssignedBy } from '../../../../src/kubelet/effective/node-source.ts';
import { CONFIG_SOURCE_ANNOTATION, formatIdentity, formatSourceAnnotation } from '../../../../src/kubelet/layers/config-source.ts';
import { formatManifest, formatPointer } from '../../../../src/kubelet/node-agent/layout.ts';
import { regular } from '../../../support/host-to-join.ts';
import { cluster, contextOf, host, join, joinOptions, planJoin, refusalOf, useJoinWorld } from '../../../support/join-world.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';
import { withRun } from '../../../support/with-run.ts';

const CONFIG = '/var/lib/kubelet/config.yaml';
/** The command line of the kubelet; null: no process can be observed. */
let argv: readonly string[] | null;
let version: string;

const shell = (words: readonly string[]) => {
  const script = words.at(-1) ?? '';
  if (script.includes('/cmdline') && argv !== null) return { stdout: `712 1 2\n${argv.join('\0')}\0` };
  return { exitCode: script.includes('command -v systemctl') ? 0 : 1 };
};

beforeEach(() => {
  [argv, version] = [null, 'v1.36.2'];
});
useJoinWorld({ sh: shell, kubelet: () => ({ stdout: `Kubernetes ${version}\n` }) });

const DIRECTORY = '/var/lib/kubelet/kubeletadm-agent';
const HASH = 'a'.repeat(64);
const IN_FORCE = { namespace: 'kube-system', name: 'node-config', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '7' };

/** Joins the host with maxPods 10. */
const joined = async (): Promise<void> => {
  await join('maxPods: 10');
  argv = ['/usr/bin/kubelet', `--config=${CONFIG}`];
};
/** The agent of the host has started the kubelet with a ConfigMap: the text of config.yaml with these fields. */
const assigned = (fields: string, sets?: readonly string[] | null): void => {
  const checkpoint = `${DIRECTORY}/checkpoints/${HASH}`;
  const present = (host.text(CONFIG) ?? '').replace(/^maxPods: .*\n/m, '');
  host.files.set(`${checkpoint}/kubelet.yaml`, regular(`${present}${fields}\n`));
  host.files.set(
    `${checkpoint}/manifest.json`,
    regular(formatManifest({ identity: IN_FORCE, files: ['kubelet.yaml'], ...(sets === undefined ? {} : { sets }) })),
  );
  argv = ['/usr/bin/kubelet', `--config=${CONFIG}`, `--config=${checkpoint}/kubelet.yaml`];
};
const planUpgrade = (setting: string, more: Partial<UpgradeNodeOptions> = {}) => {
  const { nodeRegistration: _, ...shared } = joinOptions('');
  const options: UpgradeNodeOptions = {
    ...shared,
    overlays: null,
    patches: null,
    settings: [setting],
    ignoreSavedSettings: false,
    nodeName: null,
    ...more,
  };
  return planWorkflow(upgradeNodeWorkflow, contextOf(), options, { dryRun: false, skipPhases: [] });
};

const MESSAGE =
  'preflight: the change of config.yaml would have no effect: Node w1 uses ConfigMap kube-system/node-config, which overrides maxPods (desired 20, running 33)';
const HINT =
  'Change the ConfigMap, or remove the assignment with kubeletadm dynamic reset w1. To continue anyway, use --ignore-preflight-errors=ConfigOverridden';
const REFUSED = { exitCode: 3, problems: [{ host: 'w1', code: 'ConfigOverridden', message: MESSAGE, hint: HINT }] };
const WARNING = {
  code: 'ConfigOverridden',
  field: 'maxPods',
  message:
    'ConfigMap kube-system/node-config overrides maxPods (desired 20, running 33). To change the field, change the ConfigMap, or run kubeletadm dynamic reset w1',
};

describe('a change of a field that a ConfigMap overrides', () => {
  it('is refused by join with the name of the ConfigMap, and nothing is written', async () => {
    await joined();
    assigned('maxPods: 33', null);
    const [before, texts] = [host.performed.length, host.texts()];
    expect(await refusalOf(planJoin('maxPods: 20'))).toEqual(REFUSED);
    expect(host.performed.slice(before)).toEqual([]);
    expect(host.texts()).toEqual(texts);
  });

  it('is refused by upgrade node, and nothing is written', async () => {
    await joined();
    assigned('maxPods: 33', ['maxPods']);
    const [before, texts] = [host.performed.length, host.texts()];
    expect(await refusalOf(planUpgrade('maxPods=20'))).toEqual(REFUSED);
    expect(host.performed.slice(before)).toEqual([]);
    expect(host.texts()).toEqual(texts);
  });

  it('names the time of the assignment if the Node has it', async () => {
    await joined();
    assigned('maxPods: 33', null);
    const annotations = {
      [CONFIG_SOURCE_ANNOTATION]: formatSourceAnnotation(IN_FORCE),
      [ASSIGNED_BY_ANNOTATION]: formatAssignedBy(IN_FORCE, { by: 'alice', at: new Date('2030-01-01T00:00:00Z') }),
    };
    await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'w1' }, 'merge', { metadata: { annotations } });
    const { problems } = await refusalOf(planJoin('maxPods: 20'));
    expect(problems[0]?.message).toContain('ConfigMap kube-system/node-config (assigned at 2030-01-01T00:00:00Z), which overrides maxPods');
  });

  it('is refused without the Node', async () => {
    await joined();
    assigned('maxPods: 33', null);
    await cluster.delete({ apiVersion: 'v1', kind: 'Node', name: 'w1' });
    expect(await refusalOf(planJoin('maxPods: 20'))).toEqual(REFUSED);
  });

  it('is shown with its refusal in a dry run', async () => {
    await joined();
    assigned('maxPods: 33', null);
    const planned = await planWorkflow(joinWorkflow, contextOf(), joinOptions('maxPods: 20'), { dryRun: true, skipPhases: [] });
    expect(planned.refusals).toEqual(REFUSED.problems);
    expect(planned.host.phases.flatMap(({ plan }) => plan.changes)).not.toEqual([]);
  });

  it('is applied with a warning if the check is ignored', async () => {
    await joined();
    assigned('maxPods: 33', null);
    const { warnings, apply } = await planJoin('maxPods: 20', withRun({ ignorePreflightErrors: ['ConfigOverridden'] }));
    expect(warnings).toContainEqual(WARNING);
    await apply(contextOf());
    expect(host.text(CONFIG)).toContain('maxPods: 20\n');
    expect((await planJoin('maxPods: 20')).warnings).toContainEqual(WARNING);
  });

  it.each<[string, string, string, readonly string[] | null]>([
    ['the ConfigMap has the same value', 'maxPods: 33', 'maxPods: 33', null],
    ['the ConfigMap leaves the field to the file', 'maxPods: 20', 'maxPods: 10\nregistryPullQPS: 7', ['registryPullQPS']],
  ])('is not refused: %s', async (_, change, running, sets) => {
    await joined();
    assigned(running, sets);
    expect((await planJoin(change)).warnings.filter(({ code }) => /^config/i.test(code))).toEqual([]);
  });

  it('is not refused for a field of a drop-in file, which wins over the ConfigMap; other fields are refused', async () => {
    const configDropIns = { configDir: true };
    await join('maxPods: 10', configDropIns);
    const configDropIn = '/etc/kubernetes/kubelet.conf.d/50-kubeletadm-overlay.conf';
    expect([host.text(configDropIn), host.text(CONFIG)]).toEqual([
      expect.stringContaining('maxPods: 10'),
      expect.not.stringContaining('maxPods'),
    ]);
    assigned('maxPods: 33\nregistryPullQPS: 7', ['maxPods', 'registryPullQPS']);
    argv = [...(argv ?? []), '--config-dir=/etc/kubernetes/kubelet.conf.d'];
    expect((await planJoin('maxPods: 20', configDropIns)).warnings.filter(({ code }) => /^config/i.test(code))).toEqual([]);
    // Without drop-in files the ConfigMap wins.
    expect(await refusalOf(planJoin('maxPods: 20', { configDir: false }))).toEqual(REFUSED);
  });

  it('is unknown, as a warning, for a checkpoint of an earlier agent with the old value', async () => {
    await joined();
    assigned('maxPods: 10');
    expect((await planJoin('maxPods: 20')).warnings).toContainEqual({
      code: 'CONFIG_OVERRIDE_UNKNOWN',
      message: 'ConfigMap kube-system/node-config may override maxPods: the agent has not recorded which fields the ConfigMap sets',
    });
  });

  it('is unknown, as a warning, for a damaged manifest', async () => {
    await joined();
    assigned('maxPods: 33', null);
    host.files.set(`${DIRECTORY}/checkpoints/${HASH}/manifest.json`, regular('{'));
    expect((await planJoin('maxPods: 20')).warnings).toContainEqual({
      code: 'CONFIG_OVERRIDE_UNKNOWN',
      message: expect.stringMatching(
        /^it is unknown which fields of config\.yaml a ConfigMap overrides: the kubelet uses a ConfigMap, but .*manifest\.json, which names .* cannot be read$/,
      ),
    });
  });

  it('is decided by the process, not by the status of the Node', async () => {
    await joined();
    const status = { 'kubeletadm.dev/config-status': JSON.stringify({ active: formatIdentity(IN_FORCE) }) };
    await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'w1' }, 'merge', { metadata: { annotations: status } });
    expect((await planJoin('maxPods: 20')).warnings.filter(({ code }) => /^config/i.test(code))).toEqual([]);
    // The process cannot be observed.
    argv = null;
    expect((await planJoin('maxPods: 20')).warnings).toContainEqual({
      code: 'CONFIG_OVERRIDE_UNKNOWN',
      message: expect.stringMatching(
        /: the kubelet uses ConfigMap kube-system\/node-config, but the checkpoint on the host cannot be read/,
      ),
    });
  });

  it('is refused for the native assignment of a kubelet up to 1.23', async () => {
    version = 'v1.21.0';
    const ignorePreflightErrors = ['KubeletVersion'];
    const options = joinOptions('maxPods: 10', withRun({ ignorePreflightErrors }));
    await runWorkflow(joinWorkflow, contextOf(), options, { dryRun: false, skipPhases: [] });
    const store = '/var/lib/kubelet/dynamic-config/store';
    argv = ['/usr/bin/kubelet', `--config=${CONFIG}`, '--dynamic-config-dir=/var/lib/kubelet/dynamic-config'];
    host.files.set(`${store}/meta/assigned`, regular(renderMetaFile(IN_FORCE)));
    const present = (host.text(CONFIG) ?? '').replace(/^maxPods: .*\n/m, '');
    host.files.set(`${store}/checkpoints/u/7/kubelet`, regular(`${present}maxPods: 33\n`));
    const texts = host.texts();
    expect(await refusalOf(planJoin('maxPods: 20', withRun({ ignorePreflightErrors })))).toEqual(REFUSED);
    expect(host.texts()).toEqual(texts);
  });

  it('is refused for a stopped kubelet whose next start is with a ConfigMap', async () => {
    await joined();
    assigned('maxPods: 33', null);
    argv = null;
    const unit = host.units.get('kubelet');
    if (unit === undefined) throw new Error('no unit');
    unit.state = { ...unit.state, activeState: 'inactive' };
    host.files.set(`${DIRECTORY}/active.env`, regular(formatPointer(DIRECTORY, HASH)));
    host.files.set('/etc/systemd/system/kubelet.service.d/20-kubeletadm-agent.conf', regular('[Service]\n'));
    expect(await refusalOf(planJoin('maxPods: 20'))).toEqual(REFUSED);
  });
});
