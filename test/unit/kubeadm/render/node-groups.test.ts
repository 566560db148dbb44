import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { parseSource, type SourceDocument } from '../../../../src/codec/source.ts';
import { designGroup, type GroupInput } from '../../../../src/kubeadm/render/group-design.ts';
import { NodeGroups } from '../../../../src/kubeadm/render/node-groups.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { configFieldChanges } from '../../../../src/kubelet/effective/field-changes.ts';
import type { RunningConfigInput } from '../../../../src/kubelet/effective/running-config.ts';
import { addLayer, NO_LAYERS } from '../../../../src/kubelet/layers/layers.ts';
import { loadTemplates } from '../../../../src/template-files.ts';

const templates = await loadTemplates();
const catalogue = await loadCatalogue();
const clusterOf = (maxPods: number) =>
  addLayer(NO_LAYERS, { overlay: { maxPods }, originOf: () => ({ layer: 'cluster', source: 'test' }) });
const overlay = (text: string): SourceDocument => {
  const [document] = parseSource(`apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${text}\n`, 'o.yaml').documents;
  return document as SourceDocument;
};
const dropIn = '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf';
const patch = { source: 'p.yaml', type: 'merge', patch: { podPidsLimit: 100 } } as const;
const setting = { path: ['resolvConf'], value: '/etc/a', source: 'fleet.yaml:1:1' };
const driver = { driver: 'systemd', source: 'containerd config dump', change: 'SystemdCgroup = true' } as const;

const BASE: GroupInput = {
  templates,
  catalogue,
  cluster: clusterOf(50),
  clusterIsDeclared: false,
  minor: 36,
  assumed: false,
  resolvedActive: false,
  runtimeCgroupDriver: driver,
  criSocket: 'unix:///run/containerd/containerd.sock',
  criSocketSource: 'detected on the host',
  instanceConfig: true,
  overlays: [overlay('serializeImagePulls: false')],
  declared: [setting],
  patches: [patch],
  settings: ['maxPods=60'],
  kubeletPath: '/usr/bin/kubelet',
  unitFiles: [[dropIn, null]],
  unit: { unitFileState: 'enabled' },
  packageFamily: 'deb',
};

/** At least one other value of every input; the type requires each of them. */
const OTHER: { readonly [K in keyof Required<GroupInput>]: readonly Required<GroupInput>[K][] } = {
  templates: [new Map(templates)],
  catalogue: [{ ...catalogue }],
  cluster: [clusterOf(51)],
  clusterIsDeclared: [true],
  minor: [35],
  assumed: [true],
  resolvedActive: [true],
  runtimeCgroupDriver: [null, { ...driver, driver: 'cgroupfs' }, { ...driver, source: 'crictl' }, { ...driver, change: 'other' }],
  criSocket: ['unix:///run/crio/crio.sock'],
  criSocketSource: ['nodeRegistration.criSocket'],
  instancePatch: [{}, { containerRuntimeEndpoint: 'unix:///run/other.sock' }],
  instanceConfig: [false],
  overlays: [[], [overlay('serializeImagePulls: true')], [...BASE.overlays, overlay('podsPerCore: 2')]],
  declared: [[], [{ ...setting, path: ['cgroupRoot'] }], [{ ...setting, value: '/etc/b' }], [{ ...setting, source: 'fleet.yaml:2:1' }]],
  patches: [
    [],
    [patch, patch],
    [{ ...patch, source: 'q.yaml' }],
    [{ ...patch, type: 'strategic' }],
    [{ ...patch, patch: { podPidsLimit: 101 } }],
  ],
  configDir: [true],
  settings: [[], ['maxPods=61'], ['maxPods=60', 'maxPods=60']],
  kubeletPath: ['/opt/bin/kubelet'],
  unitFiles: [
    [],
    [['/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf', null]],
    [[dropIn, { type: 'file', content: '[Service]\nExecStart=\nExecStart=/bin/true\n' }]],
    [[dropIn, { type: 'file', content: '[Service]\nExecStart=\nExecStart=/bin/false\n' }]],
    [[dropIn, { type: 'other', target: '/dev/null' }]],
  ],
  unit: [null, { unitFileState: 'masked' }],
  packageFamily: ['rpm', null],
};

const CHANGED = (Object.keys(OTHER) as (keyof GroupInput)[]).flatMap((name) =>
  OTHER[name].map((value, i) => ({ title: `${name} (${i + 1})`, input: { ...BASE, [name]: value } as GroupInput })),
);

describe('NodeGroups', () => {
  it('designs hosts with equal inputs once', () => {
    const groups = new NodeGroups();
    const { templates: _, catalogue: __, cluster: ___, overlays: ____, ...values } = BASE;
    expect(groups.designOf({ ...BASE, ...structuredClone(values) })).toBe(groups.designOf(BASE));
    expect(groups.designOf(BASE)).toEqual(designGroup(BASE));
  });

  it.each(CHANGED)('designs a host with another $title separately', ({ input }) => {
    const groups = new NodeGroups();
    const base = groups.designOf(BASE);
    const other = groups.designOf(input);
    expect(other).not.toBe(base);
    expect(other).toEqual(designGroup(input));
    expect(groups.designOf(BASE)).toBe(base);
  });

  it('reports the errors of a group to each of its hosts', () => {
    const groups = new NodeGroups();
    const wrong = { ...BASE, settings: ['maxPodz=1'] };
    for (let host = 0; host < 2; host++) expect(() => groups.designOf(wrong)).toThrow(/maxPodz/);
  });

  it('computes the effective configuration of equal kubelets once', () => {
    const groups = new NodeGroups();
    const header = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
    const input = (fields: string, flags: RunningConfigInput['flags'] = []): RunningConfigInput => ({
      catalogue,
      minor: 36,
      configFile: { path: '/c', text: `${header}${fields}\n` },
      dynamicConfig: null,
      dropIns: [],
      flags,
    });
    const flag = { name: 'max-pods', value: '7', source: '/f' };
    const first = groups.effectiveOf(input('maxPods: 5'));
    expect(groups.effectiveOf(input('maxPods: 5'))).toBe(first);
    const others = [input('maxPods: 6'), input('maxPods: 5', [flag])];
    expect([first, ...others.map((each) => groups.effectiveOf(each))].map(({ maxPods }) => maxPods)).toEqual([5, 6, 7]);
    for (let host = 0; host < 2; host++) expect(() => groups.effectiveOf(input('maxPods: ['))).toThrow();
  });

  it('compares two effective configurations once for each pair and minor', () => {
    const groups = new NodeGroups();
    const [five, six] = [{ maxPods: 5 }, { maxPods: 6 }];
    const between = (before: JsonObject, after: JsonObject, minor = 36) => groups.fieldChangesOf(before, after, { catalogue, minor });
    const first = between(five, six);
    expect(first).toEqual(configFieldChanges(five, six, { catalogue, minor: 36 }));
    expect(between(five, six)).toBe(first);
    expect(between(six, five)).toMatchObject([{ field: 'maxPods', before: 6, after: 5 }]);
    expect(between(five, five)).toEqual([]);
    expect(between(five, six, 35)).not.toBe(first);
  });

  it('limits its size', () => {
    const groups = new NodeGroups(2);
    const first = groups.designOf(BASE);
    for (const criSocketSource of ['a', 'b']) groups.designOf({ ...BASE, criSocketSource });
    expect(groups.designOf(BASE)).not.toBe(first);
  });
});
