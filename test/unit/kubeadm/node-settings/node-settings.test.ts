import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeNodeSettings,
  encodeNodeSettings,
  NO_SETTINGS,
  type NodeSettings,
} from '../../../../src/kubeadm/node-settings/node-settings.ts';
import { numberOfRuns } from '../../../support/thorough.ts';

const FULL: NodeSettings = {
  nodeRegistration: {
    name: 'w1',
    criSocket: 'unix:///run/crio/crio.sock',
    taints: [{ key: 'gpu', value: 'a100', effect: 'NoSchedule' }],
    kubeletExtraArgs: [
      { name: 'node-labels', value: 'pool=edge' },
      { name: 'v', value: '4' },
      { name: 'v', value: '2' },
    ],
  },
  overlays: [{ source: 'w1.yaml', content: { maxPods: 60, evictionHard: { 'memory.available': '5%' } } }],
  declared: [{ path: ['resolvConf'], value: '/etc/resolv.conf', source: '--resolv-conf' }],
  settings: ['logging.verbosity=4', 'clusterDNS=10.0.0.10,10.0.0.11'],
  patches: [
    { source: 'patches/kubeletconfiguration+json.yaml', type: 'json', patch: [{ op: 'replace', path: '/maxPods', value: 40 }] },
    { source: 'patches/kubeletconfiguration0.yaml', type: 'strategic', patch: { cpuManagerPolicy: null } },
  ],
};

describe('NodeSettings', () => {
  it('is encoded as YAML with apiVersion and kind', () => {
    expect(encodeNodeSettings(NO_SETTINGS)).toBe(
      'apiVersion: kubeletadm.dev/v1alpha1\ndeclared: []\nkind: NodeSettings\nnodeRegistration: {}\noverlays: []\npatches: []\nsettings: []\n',
    );
  });

  it('is unchanged after a round trip', () => {
    expect(decodeNodeSettings(encodeNodeSettings(FULL))).toEqual(FULL);
    expect(decodeNodeSettings(encodeNodeSettings(NO_SETTINGS))).toEqual(NO_SETTINGS);
  });

  it('is unchanged after a round trip of any string', () => {
    // U+FFFD replaces invalid UTF-8: the decoder rejects it.
    const text = fc.string({ unit: 'grapheme', maxLength: 40 }).filter((each) => !each.includes('\uFFFD'));
    fc.assert(
      fc.property(text, text, fc.jsonValue({ maxDepth: 3, noUnicodeString: false }), (name, value, patch) => {
        // JSON has no -0, and the YAML encoder of Kubernetes prints none.
        const json = JSON.parse(JSON.stringify(patch));
        const settings: NodeSettings = {
          ...NO_SETTINGS,
          nodeRegistration: { name, kubeletExtraArgs: [{ name, value }] },
          settings: [value],
          patches: [{ source: name, type: 'merge', patch: { value: typeof json === 'number' ? Math.trunc(json % 1e9) + 0 : value } }],
        };
        expect(decodeNodeSettings(encodeNodeSettings(settings))).toEqual(settings);
      }),
      { numRuns: numberOfRuns(200) },
    );
  });

  it.each([
    { text: '', why: /kubeletadm-node\.yaml: the file is empty\. Delete the file/ },
    { text: 'a: [', why: /kubeletadm-node\.yaml: .*NODE_MEMORY_INVALID/ },
    {
      text: encodeNodeSettings(FULL).replace('effect: NoSchedule', 'effect: Never'),
      why: /kubeletadm-node\.yaml: nodeRegistration.taints.0.effect: /,
    },
    { text: encodeNodeSettings(FULL).replace('kind: NodeSettings', 'kind: Other'), why: /kubeletadm-node\.yaml: kind: / },
    { text: `${encodeNodeSettings(FULL)}tokens: []\n`, why: /tokens/ },
  ])('reports the error in $text', ({ text, why }) => {
    expect(() => decodeNodeSettings(text)).toThrow(why);
  });
});
