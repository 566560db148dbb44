import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import type { Json } from '../../../../src/base/json.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { explainLayers, selectFields } from '../../../../src/kubelet/effective/node-explanation.ts';
import { layerRunningConfig, type RunningConfig, type RunningConfigInput } from '../../../../src/kubelet/effective/running-config.ts';
import { leavesOf } from '../../../../src/kubelet/layers/layers.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

function file(text: string, path = '/var/lib/kubelet/config.yaml') {
  return { path, text: `${HEADER}${text}` };
}

function layer(change: Partial<RunningConfigInput>): RunningConfig {
  return layerRunningConfig({ catalogue, minor: 36, configFile: file(''), dynamicConfig: null, dropIns: [], flags: [], ...change });
}

/** Value and origin of a field, then the overridden values. */
function why({ layered }: RunningConfig, path: string): readonly (readonly [Json | undefined, string, string])[] {
  return selectFields(explainLayers(layered), path).flatMap(({ value, layer: name, source, lost }) => [
    [value, name, source] as const,
    ...lost.map((word) => [word.value, word.layer, word.source] as const),
  ]);
}

const EXTRA = 'KUBELET_EXTRA_ARGS in /etc/default/kubelet';

describe('layerRunningConfig', () => {
  it('merges defaults, the file, drop-in files and flags, and records overridden values', () => {
    const running = layer({
      configFile: file('maxPods: 50\n'),
      dropIns: [file('maxPods: 60\n', '/etc/kubelet.d/10-a.conf'), file('maxPods: 70\n', '/etc/kubelet.d/20-b.conf')],
      flags: [{ name: 'max-pods', value: '80', source: EXTRA }],
    });
    expect(why(running, 'maxPods')).toEqual([
      [80, 'flag', `--max-pods, ${EXTRA}`],
      [70, 'drop-in', '/etc/kubelet.d/20-b.conf:3'],
      [60, 'drop-in', '/etc/kubelet.d/10-a.conf:3'],
      [50, 'config file', '/var/lib/kubelet/config.yaml:3'],
      [110, 'kubelet default', 'kubelet 1.36'],
    ]);
  });

  it('an equal value has the last layer as its origin', () => {
    const running = layer({ configFile: file('maxPods: 110\n') });
    expect(why(running, 'maxPods')[0]).toEqual([110, 'config file', '/var/lib/kubelet/config.yaml:3']);
  });

  it('a zero that the kubelet replaces has the default as its origin', () => {
    const running = layer({ configFile: file('syncFrequency: 0s\nhealthzPort: 0\n') });
    expect(why(running, 'syncFrequency')).toEqual([['1m0s', 'kubelet default', 'kubelet 1.36']]);
    expect(why(running, 'healthzPort')[0]).toEqual([0, 'config file', '/var/lib/kubelet/config.yaml:4']);
  });

  it('has other defaults without a configuration file', () => {
    const running = layer({ configFile: null });
    expect(why(running, 'authorization.mode')).toEqual([
      ['AlwaysAllow', 'kubelet default', 'without a configuration file'],
      ['Webhook', 'kubelet default', 'kubelet 1.36'],
    ]);
    expect(why(running, 'readOnlyPort')[0]?.[0]).toBe(10255);
    expect(why(running, 'evictionHard')).toEqual([]);
  });

  it('adds hard eviction thresholds after the file and before drop-in files', () => {
    const running = layer({ dropIns: [file('evictionHard: {memory.available: 1Gi}\n', '/d/a.conf')] });
    expect(why(running, 'evictionHard[memory.available]').map(([value]) => value)).toEqual(['1Gi', '100Mi']);
    expect(why(running, 'evictionHard.nodefs.available')).toEqual([['10%', 'kubelet default', 'not set in /var/lib/kubelet/config.yaml']]);
    const own = layer({ configFile: file('evictionHard: {memory.available: 1Gi}\n') });
    expect(own.layered.config.evictionHard).toEqual({ 'memory.available': '1Gi' });
  });

  it('a drop-in file merges maps, replaces lists, and removes fields with null', () => {
    const running = layer({
      configFile: file('kubeReserved: {cpu: 100m, memory: 1Gi}\nclusterDNS: [10.0.0.1]\nmaxPods: 50\nclusterDomain: a.b\n'),
      dropIns: [file('kubeReserved: {cpu: null, pid: "100"}\nclusterDNS: [10.0.0.2]\nmaxPods: null\nclusterDomain: null\n', '/d/a.conf')],
    });
    expect(running.layered.config).toMatchObject({ kubeReserved: { memory: '1Gi', pid: '100' }, clusterDNS: ['10.0.0.2'], maxPods: 110 });
    expect(leavesOf(running.layered.config).has('clusterDomain')).toBe(false);
    expect(leavesOf(running.layered.config).has('kubeReserved.cpu')).toBe(false);
    expect(why(running, 'maxPods').slice(0, 2)).toEqual([
      [110, 'kubelet default', 'not set by the drop-in files'],
      [undefined, 'drop-in', '/d/a.conf'],
    ]);
    expect(why(running, 'kubeReserved.memory')[0]).toEqual(['1Gi', 'config file', '/var/lib/kubelet/config.yaml:3']);
  });

  it('drops empty lists when drop-in files are merged, and adds defaults after the last one', () => {
    const running = layer({
      configFile: file('enforceNodeAllocatable: []\n'),
      dropIns: [file('nodeStatusReportFrequency: 0s\n', '/d/a.conf'), file('nodeStatusUpdateFrequency: 30s\n', '/d/b.conf')],
    });
    expect(running.layered.config).toMatchObject({ enforceNodeAllocatable: ['pods'], nodeStatusReportFrequency: '30s' });
    expect(layer({ configFile: file('enforceNodeAllocatable: []\n') }).layered.config.enforceNodeAllocatable).toEqual([]);
  });

  it('enables seccompDefault by the flag or the file', () => {
    const seccomp = (text: string, value: string): Json | undefined =>
      layer({ configFile: file(text), flags: [{ name: 'seccomp-default', value, source: EXTRA }] }).layered.config.seccompDefault;
    expect([seccomp('seccompDefault: true\n', 'false'), seccomp('', 'true'), seccomp('', 'false')]).toEqual([true, true, false]);
  });

  it('feature gates of flags are merged with those of the file', () => {
    const running = layer({
      configFile: file('featureGates: {NodeSwap: true, AllAlpha: false}\n'),
      flags: [{ name: 'feature-gates', value: 'AllAlpha=true', source: EXTRA }],
    });
    expect(why(running, 'featureGates')).toEqual([
      [true, 'flag', `--feature-gates, ${EXTRA}`],
      [false, 'config file', '/var/lib/kubelet/config.yaml:3'],
      [true, 'config file', '/var/lib/kubelet/config.yaml:3'],
    ]);
  });

  it('resolves relative paths against the directory of the file', () => {
    const running = layer({
      configFile: file('staticPodPath: manifests\nresolvConf: ../run/./r.conf\nvolumePluginDir: /v\n', '/etc/k/config.yaml'),
    });
    expect(running.layered.config).toMatchObject({
      staticPodPath: '/etc/k/manifests',
      resolvConf: '/etc/run/r.conf',
      volumePluginDir: '/v',
    });
  });

  it('a dynamic configuration replaces the whole file', () => {
    const running = layer({
      minor: 21,
      configFile: file('maxPods: 50\nclusterDomain: a.b\n'),
      dynamicConfig: file('maxPods: 60\n', '/dyn/kubelet'),
    });
    expect(why(running, 'maxPods').slice(0, 2)).toEqual([
      [60, 'dynamic config', '/dyn/kubelet:3'],
      [50, 'config file', '/var/lib/kubelet/config.yaml:3'],
    ]);
    expect(running.layered.config.clusterDomain).toBeUndefined();
  });

  it('reports fields that the kubelet ignores', () => {
    const { problems } = layer({
      configFile: file('maxPodz: 5\n'),
      flags: [{ name: 'max-pods', value: 'many', source: EXTRA }],
    });
    expect(problems.map(({ code, severity, path }) => [code, severity, path])).toEqual([
      ['CONFIG_UNKNOWN_FIELD', 'warning', 'maxPodz'],
      ['KUBELET_FLAG_INVALID', 'warning', 'maxPods'],
    ]);
  });

  it.each([
    ['a wrong type', `${HEADER}maxPods: many\n`, /config.yaml:3:10 maxPods: must be an integer/],
    ['no YAML', `${HEADER}a: [\n`, /not valid YAML/],
    ['nothing', '', /config.yaml is empty|there is no/],
  ])('refuses a file with %s, as the kubelet does', (_, text, message) => {
    const run = (): unknown => layer({ configFile: { path: '/var/lib/kubelet/config.yaml', text } });
    expect(run).toThrow(AppError);
    expect(run).toThrow(message);
  });
});
