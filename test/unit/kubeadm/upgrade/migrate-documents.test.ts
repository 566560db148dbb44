import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { isGenerated, kubeletConfigMap } from '../../../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import type { ClusterConfiguration } from '../../../../src/kubeadm/config/model.ts';
import { type ClusterMigrationInput, migrateClusterDocuments } from '../../../../src/kubeadm/upgrade/migrate-documents.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

function kubeletConfig(fields: string, generated = true): KubeObject {
  return kubeletConfigMap('kubelet-config', HEADER + fields, generated);
}

function migrate(input: Partial<ClusterMigrationInput>) {
  const cluster: ClusterConfiguration = { kubernetesVersion: 'v1.35.6' };
  return migrateClusterDocuments({ cluster, kubelet: null, from: 'v1.35.6', target: 'v1.36.2', catalogue, ...input });
}

describe('migrateClusterDocuments: ClusterConfiguration', () => {
  it('sets the version and keeps all other settings', () => {
    const cluster: ClusterConfiguration = { kubernetesVersion: 'v1.35.6', clusterName: 'a', featureGates: { PublicKeysECDSA: true } };
    const { cluster: migrated, notes } = migrate({ cluster });
    expect(migrated).toEqual({ ...cluster, kubernetesVersion: 'v1.36.2' });
    expect(notes).toEqual([]);
  });

  it('removes and reports feature gates that the new kubeadm does not know', () => {
    const cluster: ClusterConfiguration = { featureGates: { ControlPlaneKubeletLocalMode: true } };
    const { cluster: migrated, notes } = migrate({ cluster });
    expect(migrated).toEqual({ kubernetesVersion: 'v1.36.2' });
    expect(notes.map(({ message }) => message)).toEqual([
      'ConfigMap kube-system/kubeadm-config: feature gate ControlPlaneKubeletLocalMode is removed: kubeadm of v1.36.2 does not know it',
    ]);
  });

  it('reports pinned images', () => {
    const cluster: ClusterConfiguration = { dns: { imageTag: 'v1.13.1' }, etcd: { local: { imageTag: '3.6.8-0' } } };
    expect(migrate({ cluster }).notes.map(({ field, message }) => [field, message])).toEqual([
      [
        'dns.imageTag',
        'ConfigMap kube-system/kubeadm-config: dns.imageTag keeps the image tag v1.13.1, although the default of v1.36.2 is v1.14.2',
      ],
    ]);
  });
});

describe('migrateClusterDocuments: KubeletConfiguration', () => {
  it('has none without the ConfigMap', () => {
    expect(migrate({}).kubelet).toBeNull();
  });

  it('keeps a text that needs no change, with its comments, and whether it was generated', () => {
    const fields = '# ours\nmaxPods: 60\n';
    for (const generated of [true, false]) {
      const kubelet = kubeletConfig(fields, generated);
      expect(isGenerated(kubelet)).toBe(generated);
      expect(migrate({ kubelet })).toMatchObject({ kubelet: { yaml: HEADER + fields, generated }, notes: [], refusals: [] });
    }
  });

  it('removes a gate at its default that the new kubelet does not know, and reports it', () => {
    const { kubelet, notes, refusals } = migrate({ kubelet: kubeletConfig('featureGates:\n  MemoryManager: true\nmaxPods: 60\n') });
    expect(refusals).toEqual([]);
    expect(kubelet?.yaml).toBe(`${HEADER}maxPods: 60\n`);
    expect(notes.map(({ code, field }) => [code, field])).toEqual([['UPGRADE_CONFIG_MIGRATED', 'featureGates.MemoryManager']]);
  });

  it('refuses to lose a setting without --force, and reports the loss with it', () => {
    const lossy = kubeletConfig('featureGates:\n  InPlacePodVerticalScalingAllocatedStatus: true\n');
    const refused = migrate({ kubelet: lossy });
    expect(refused.refusals.map(({ code, path }) => [code, path])).toEqual([
      ['MIGRATION_LOSES', 'featureGates.InPlacePodVerticalScalingAllocatedStatus'],
    ]);
    const forced = migrate({ kubelet: lossy, force: true });
    expect(forced.refusals).toEqual([]);
    expect(forced.notes.map(({ field }) => field)).toContain('featureGates.InPlacePodVerticalScalingAllocatedStatus');
    expect(forced.kubelet?.yaml).toBe(HEADER);
  });

  it('refuses what the new kubelet would refuse', () => {
    const { refusals } = migrate({ kubelet: kubeletConfig('maxPods: -1\n') });
    expect(refusals.map(({ path }) => path)).toEqual(['maxPods']);
    expect(migrate({ kubelet: kubeletConfig('maxPods: many\n') }).refusals).not.toEqual([]);
    expect(migrate({ kubelet: kubeletConfig('a: [\n') }).refusals).not.toEqual([]);
  });

  it('uses the rules of the newest known minor for a later one', () => {
    const { kubelet, refusals } = migrate({ kubelet: kubeletConfig('maxPods: 60\n'), from: 'v1.36.2', target: 'v1.37.0-alpha.1' });
    expect(refusals).toEqual([]);
    expect(kubelet?.yaml).toBe(`${HEADER}maxPods: 60\n`);
  });
});
