import { describe, expect, it } from 'vitest';
import { profileDefaults } from '../../../../src/kubeadm/render/profile-defaults.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { cleanConfigz } from '../../../../src/kubelet/diff/clean-configz.ts';
import { readConfigz } from '../../../../src/kubelet/effective/configz.ts';
import { assignedFile, checkpointFile, parseAssigned } from '../../../../src/kubelet/effective/dynamic-store.ts';
import { type DriftInput, findDrift } from '../../../../src/kubelet/effective/node-explanation.ts';

const catalogue = await loadCatalogue();

const CALM: DriftInput = {
  flags: [{ name: 'v', value: '2' }],
  diskFlags: [{ name: 'v', value: '2', source: '/e' }],
  files: [{ path: '/var/lib/kubelet/config.yaml', modifiedAt: 100 }],
  unit: { startedAt: 100, needsReload: false },
  runningVersion: 'v1.36.2',
  diskVersion: 'v1.36.2',
  startsNext: true,
};

describe('findDrift', () => {
  it.each<[string, Partial<DriftInput>, readonly string[]]>([
    ['nothing', {}, []],
    ['a host without information', { diskFlags: null, unit: null, runningVersion: null }, []],
    [
      'a file edited after the start',
      { files: [{ path: '/c', modifiedAt: 101 }] },
      ['NOT_RESTARTED: /c was edited after the kubelet started, which may have other values: restart the kubelet to apply the change'],
    ],
    [
      'a flag changed on disk',
      { diskFlags: [{ name: 'v', value: '4', source: '/e' }] },
      ['NOT_RESTARTED: the running kubelet has --v=2, but the unit sets --v=4 (/e): restart the kubelet to apply the change'],
    ],
    [
      'a flag added on disk',
      {
        diskFlags: [
          { name: 'max-pods', value: '4', source: '/e' },
          { name: 'v', value: '2', source: '/e' },
        ],
      },
      [
        'NOT_RESTARTED: the running kubelet has no --max-pods, but the unit sets --max-pods=4 (/e): restart the kubelet to apply the change',
      ],
    ],
    [
      'a flag removed on disk',
      { diskFlags: [] },
      ['NOT_RESTARTED: the running kubelet has --v=2, but the unit no longer sets this flag: restart the kubelet to apply the change'],
    ],
    [
      'another program on disk',
      { diskVersion: 'v1.36.3' },
      ['VERSION_REPLACED: the running kubelet is v1.36.2, the program on disk is v1.36.3: restart the kubelet to run the new program'],
    ],
    [
      'unit files edited',
      { unit: { startedAt: 100, needsReload: true } },
      ['NEEDS_RELOAD: the unit files of the kubelet were edited after systemd read them: run systemctl daemon-reload'],
    ],
  ])('finds %s', (_, change, messages) => {
    expect(findDrift({ ...CALM, ...change }).map(({ code, message }) => `${code}: ${message}`)).toEqual(messages);
  });
});

describe('readConfigz', () => {
  it('adds the header and normalises values', () => {
    const config = readConfigz({ kubeletconfig: { maxPods: 50, syncFrequency: '60s', strange: 1 } }, 'n', { minor: 36, catalogue });
    expect({ ...config }).toEqual({
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      maxPods: 50,
      syncFrequency: '1m0s',
    });
  });

  it.each([
    ['no member', {}, 'node/n: cannot read the configz of the kubelet: the response has no field kubeletconfig [CONFIGZ_INVALID]'],
    [
      'a wrong type',
      { kubeletconfig: { maxPods: 'x' } },
      'node/n: cannot read the configz of the kubelet: maxPods: must be an integer, not the string "x" [CONFIGZ_INVALID]',
    ],
  ])('refuses %s', (_, answer, message) => {
    expect(() => readConfigz(answer, 'n', { minor: 36, catalogue })).toThrow(message);
  });
});

describe('cleanConfigz', () => {
  const options = { minor: 36, catalogue, withoutDefaults: true };

  it('is empty for a kubelet with defaults, in any minor', () => {
    for (let minor = 20; minor <= 36; minor++) {
      const config = profileDefaults('kubelet', minor, catalogue);
      expect([minor, cleanConfigz(config, { ...options, minor })]).toEqual([minor, { shared: {}, nodeSpecific: {}, masked: [] }]);
    }
  });

  it('separates host-specific fields, and keeps maps whole', () => {
    const config = {
      ...profileDefaults('kubelet', 36, catalogue),
      maxPods: 50,
      evictionHard: { 'memory.available': '1Gi', 'nodefs.available': '10%' },
      resolvConf: '/run/systemd/resolve/resolv.conf',
      providerID: 'aws:///i-1',
      healthzPort: 0,
    };
    expect(cleanConfigz(config, options)).toEqual({
      shared: { maxPods: 50, evictionHard: { 'memory.available': '1Gi', 'nodefs.available': '10%' }, healthzPort: 0 },
      nodeSpecific: { resolvConf: '/run/systemd/resolve/resolv.conf', providerID: 'aws:///i-1' },
      masked: [],
    });
  });

  it('keeps defaults on request, but no masked values', () => {
    const config = { maxPods: 110, staticPodURLHeader: { 'X-Token': ['<masked>'] } };
    expect(cleanConfigz(config, { ...options, withoutDefaults: false })).toEqual({
      shared: { maxPods: 110 },
      nodeSpecific: {},
      masked: ['staticPodURLHeader'],
    });
  });
});

describe('the store of dynamic configuration', () => {
  const ASSIGNED = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: SerializedNodeConfigSource
source:
  configMap:
    kubeletConfigKey: kubelet
    name: my-config
    namespace: kube-system
    resourceVersion: "1326"
    uid: 705ab4f5-6393-11e8-b7cc-42010a800002
`;

  it('names the checkpoint', () => {
    const assigned = parseAssigned(ASSIGNED);
    expect(assigned?.configMap).toBe('kube-system/my-config');
    expect(assignedFile('/dyn/')).toBe('/dyn/store/meta/assigned');
    expect(assigned === null ? '' : checkpointFile('/dyn', assigned)).toBe(
      '/dyn/store/checkpoints/705ab4f5-6393-11e8-b7cc-42010a800002/1326/kubelet',
    );
  });

  it.each([
    ['an empty file', ''],
    ['a key that leaves the store', ASSIGNED.replace('kubelet\n    name', '../../../etc/shadow\n    name')],
    ['no uid', ASSIGNED.replace(/\n {4}uid: .*/, '')],
  ])('%s names no checkpoint', (_, text) => {
    expect(parseAssigned(text)).toBeNull();
  });
});
