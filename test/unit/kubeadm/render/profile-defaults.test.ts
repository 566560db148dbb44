import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseSource } from '../../../../src/codec/source.ts';
import { encodeYaml } from '../../../../src/codec/yaml-encode.ts';
import { type DefaultsProfile, profileDefaults } from '../../../../src/kubeadm/render/profile-defaults.ts';
import { NEWEST_MINOR, OLDEST_MINOR } from '../../../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { decodeKubeletConfiguration } from '../../../../src/kubelet/documents/decode.ts';

const catalogue = await loadCatalogue();

describe('profileDefaults', () => {
  // kubeadm 1.36.2 wrote its golden file on a host with containerd, without systemd-resolved.
  it.each<[DefaultsProfile, number]>([
    ['kubeadm', 36],
    ['kubeadm', 24],
    ['kubelet', 21],
    ['kubelet', 29],
    ['kubelet', 36],
  ])('%s, 1.%i', async (profile, minor) => {
    const text = encodeYaml(profileDefaults(profile, minor, catalogue));
    await expect(text).toMatchFileSnapshot(path.join(import.meta.dirname, 'golden', `${profile}-defaults-1.${minor}.yaml`));
  });

  it('are valid for every kubelet of their version', () => {
    for (let minor = OLDEST_MINOR; minor <= NEWEST_MINOR; minor++) {
      for (const profile of ['kubelet', 'kubeadm'] as const) {
        const document = parseSource(encodeYaml(profileDefaults(profile, minor, catalogue)), 'defaults').documents[0];
        if (document === undefined) throw new Error('no document');
        expect([minor, decodeKubeletConfiguration(document, { minor, catalogue }).problems]).toEqual([minor, []]);
      }
    }
  });
});
