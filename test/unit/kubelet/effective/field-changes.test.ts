import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { configFieldChanges, type KubeletReading, kubeletFieldChanges } from '../../../../src/kubelet/effective/field-changes.ts';
import type { KubeletSetup } from '../../../../src/kubelet/effective/kubelet-setup.ts';
import { type HostText, layerRunningConfig } from '../../../../src/kubelet/effective/running-config.ts';
import { kubeadmSetup } from '../../../support/kubelet-setups.ts';

const CONFIG_YAML = '/var/lib/kubelet/config.yaml';
const WHY_DRIVER = 'needs a drain and usually a reboot; must match the runtime';
const FLAGS = '/var/lib/kubelet/kubeadm-flags.env';
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const READING: Omit<KubeletReading, 'changesOf'> = {
  catalogue: await loadCatalogue(),
  minor: 36,
  rootDir: '/var/lib/kubelet',
  layersOf: (input) => layerRunningConfig(input).layered,
};

function setup(config: string, flags = '', dropIns: readonly HostText[] = []): KubeletSetup {
  return kubeadmSetup({ configYaml: `${HEADER}${config}`, flagsEnv: `KUBELET_KUBEADM_ARGS="${flags}"\n`, dropIns });
}

type Sides = [config: string, flags?: string, dropIns?: readonly HostText[]];

function changes(before: Sides, after: Sides, reading: Partial<KubeletReading> = {}) {
  const own = { ...READING, ...reading };
  const changesOf: KubeletReading['changesOf'] = (old, now) => configFieldChanges(old, now, own);
  return kubeletFieldChanges(setup(...before), setup(...after), { ...own, changesOf });
}

describe('kubeletFieldChanges', () => {
  it('shows each changed field with its values and its impact', () => {
    expect(changes(['maxPods: 33\ncgroupDriver: systemd\n'], ['maxPods: 20\ncgroupDriver: cgroupfs\n'])).toEqual({
      ofConfig: [
        { field: 'cgroupDriver', before: 'systemd', after: 'cgroupfs', impact: 'unsafe', why: WHY_DRIVER, files: [CONFIG_YAML] },
        { field: 'maxPods', before: 33, after: 20, impact: 'new-pods-only', files: [CONFIG_YAML] },
      ],
      ofFlags: [],
    });
  });

  it('treats --bootstrap-kubeconfig as safe for a kubelet with usable credentials, which does not read the file', () => {
    const kubeconfig = '--kubeconfig=/etc/kubernetes/kubelet.conf';
    const bootstrap = `${kubeconfig} --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf`;
    const impactOf = (before: string, after: string, hasIdentity: boolean) =>
      changes(['', before], ['', after], { hasIdentity })?.ofFlags.find(({ field }) => field === '--bootstrap-kubeconfig')?.impact;
    expect(impactOf(kubeconfig, bootstrap, true)).toBe('safe');
    expect(impactOf(bootstrap, kubeconfig, true)).toBe('safe');
    expect(impactOf(kubeconfig, bootstrap, false)).toBe('unsafe');
    const other = bootstrap.replace('kubelet.conf', 'other.conf');
    expect(impactOf('--kubeconfig=/etc/kubernetes/other.conf', other, true)).toBe('unsafe');
  });

  it('finds no change in another spelling of the same values', () => {
    expect(changes(['syncFrequency: 1m\n'], ['syncFrequency: 60s\nmaxPods: 110\n'])).toEqual({ ofConfig: [], ofFlags: [] });
  });

  it('ignores a field of the file that a flag or a drop-in file overrides', () => {
    expect(changes(['maxPods: 10\n', '--max-pods=50'], ['maxPods: 20\n', '--max-pods=50'])?.ofConfig).toEqual([]);
    const dropIns = [{ path: '/etc/kubernetes/kubelet.conf.d/10.conf', text: `${HEADER}maxPods: 50\n` }];
    expect(changes(['maxPods: 10\n', '', dropIns], ['maxPods: 20\n', '', dropIns])?.ofConfig).toEqual([]);
  });

  it('names the files that set a field after and before the change', () => {
    const path = '/etc/kubernetes/kubelet.conf.d/10-kubeletadm-baseline.conf';
    const changed = changes(
      ['maxPods: 10\n'],
      ['', '--config-dir=/etc/kubernetes/kubelet.conf.d', [{ path, text: `${HEADER}maxPods: 20\n` }]],
    );
    expect(changed?.ofConfig).toEqual([{ field: 'maxPods', before: 10, after: 20, impact: 'safe', files: [path, CONFIG_YAML] }]);
    // The flag itself has no effect beyond the fields of the drop-in files.
    expect(changed?.ofFlags).toMatchObject([{ field: '--config-dir', impact: 'safe' }]);
  });

  it('reports the field of a changed flag with the flags', () => {
    expect(changes(['', '--max-pods=50'], ['', '--max-pods=40'])).toEqual({
      ofConfig: [],
      ofFlags: [{ field: 'maxPods', before: 50, after: 40, impact: 'new-pods-only', files: [FLAGS] }],
    });
  });

  it.each<[string, string, object]>([
    ['--hostname-override=a', '--hostname-override=b', { field: '--hostname-override', before: 'a', after: 'b', impact: 'unsafe' }],
    ['', '--node-ip=10.0.0.1', { field: '--node-ip', before: null, after: '10.0.0.1', impact: 'drain' }],
    ['--node-labels=a=b', '', { field: '--node-labels', before: 'a=b', after: null, impact: 'safe' }],
    // A 1.36 kubelet does not know the flag.
    ['--container-runtime=remote', '', { field: '--container-runtime', before: 'remote', after: null, impact: 'safe' }],
  ])('knows the effect of flags without a field: %s to %s', (before, after, field) => {
    expect(changes(['', before], ['', after])?.ofFlags).toEqual([{ ...field, files: [FLAGS] }]);
  });

  it('masks values that can authenticate the kubelet', () => {
    const found = changes(
      ['staticPodURL: https://a:hush@pods.example/\nstaticPodURLHeader:\n  Authorization: [Bearer hush]\n'],
      ['staticPodURL: https://b:hush2@pods.example/\nstaticPodURLHeader:\n  Authorization: [Bearer hush2]\n'],
    );
    expect(found?.ofConfig.map(({ field }) => field)).toEqual(['staticPodURL', 'staticPodURLHeader[Authorization]']);
    expect(JSON.stringify(found)).not.toContain('hush');
  });

  it('returns null for a file with which no kubelet starts', () => {
    expect(changes(['maxPods: [\n'], ['maxPods: 20\n'])).toBeNull();
  });
});
