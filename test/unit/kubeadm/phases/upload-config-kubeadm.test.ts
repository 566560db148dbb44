import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import type { JsonObject } from '../../../../src/base/json.ts';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { applyClusterDefaults, mergeClusterConfiguration } from '../../../../src/kubeadm/config/defaults.ts';
import { encodeClusterConfiguration } from '../../../../src/kubeadm/config/encode.ts';
import type { ClusterConfiguration } from '../../../../src/kubeadm/config/model.ts';
import {
  kubeadmConfigMap,
  kubeadmConfigRbac,
  type UploadKubeadmConfigInput,
  uploadConfigKubeadm,
} from '../../../../src/kubeadm/phases/upload-config.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const REF = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' };
const encode = (model: ClusterConfiguration): JsonObject => encodeClusterConfiguration(applyClusterDefaults(model));
const FOUND: ClusterConfiguration = {
  kubernetesVersion: 'v1.36.2',
  networking: { podSubnet: '10.244.0.0/16', serviceSubnet: '10.97.0.0/16' },
};

/** The input from init: the configuration in the cluster, merged with the declared one. */
function inputOf(found: ClusterConfiguration | null, declared: ClusterConfiguration): UploadKubeadmConfigInput {
  const merged = mergeClusterConfiguration(found ?? {}, declared);
  return { clusterConfiguration: encode(merged), currentConfiguration: found && encode(found) };
}

async function run(cluster: FakeCluster | null, input: UploadKubeadmConfigInput) {
  const context = { host: fakeHost(), cluster, clock: fakeClock(), reporter: recordingReporter() };
  const planned = await planPhases([uploadConfigKubeadm], context, input);
  if (cluster !== null) await applyPhases([uploadConfigKubeadm], context, input, planned);
  return planned[0]?.plan;
}

const settingsIn = async (cluster: FakeCluster): Promise<Record<string, unknown>> =>
  parse(((await cluster.get(REF))?.data as Record<string, string> | undefined)?.ClusterConfiguration ?? '') as Record<string, unknown>;

/** A ConfigMap of a newer kubeadm with unknown fields. */
function foundMap(): KubeObject {
  const written = { ...encode(FOUND), somethingNew: { a: 1 }, networking: { ...(encode(FOUND).networking as JsonObject), newToo: 'x' } };
  return { ...kubeadmConfigMap({}), data: { ClusterConfiguration: stringify(written), other: 'custom' } };
}

describe('upload-config/kubeadm', () => {
  it('creates the ConfigMap and its RBAC, and plans nothing the second time', async () => {
    const cluster = fakeCluster();
    const first = await run(cluster, inputOf(null, FOUND));
    expect(first?.changes.map(({ kind }) => kind)).toEqual(['create-object', 'create-object', 'create-object']);
    expect(await settingsIn(cluster)).toEqual(encode(FOUND));
    expect(await run(cluster, inputOf(FOUND, {}))).toEqual({
      changes: [],
      noop: 'ConfigMap kube-system/kubeadm-config and its RBAC rules are unchanged',
    });
    expect((await run(cluster, inputOf(FOUND, FOUND)))?.changes).toEqual([]);
  });

  it('keeps undeclared settings, including unknown ones', async () => {
    const cluster = fakeCluster({ objects: [foundMap(), ...kubeadmConfigRbac()] });
    expect((await run(cluster, inputOf(FOUND, {})))?.changes).toEqual([]);
  });

  it('changes only declared settings', async () => {
    const cluster = fakeCluster({ objects: [foundMap(), ...kubeadmConfigRbac()] });
    const before = await settingsIn(cluster);
    const plan = await run(cluster, inputOf(FOUND, { controlPlaneEndpoint: 'lb:6443', networking: { dnsDomain: 'example.test' } }));
    expect(plan?.changes).toMatchObject([{ kind: 'update-object', reason: 'the declared settings differ' }]);
    expect(await settingsIn(cluster)).toEqual({
      ...before,
      controlPlaneEndpoint: 'lb:6443',
      networking: { ...(before.networking as object), dnsDomain: 'example.test' },
    });
    expect((await cluster.get(REF))?.data).toMatchObject({ other: 'custom' });
  });

  it('replaces invalid YAML', async () => {
    const broken = { ...kubeadmConfigMap({}), data: { ClusterConfiguration: ': not [yaml' } };
    const cluster = fakeCluster({ objects: [broken, ...kubeadmConfigRbac()] });
    await run(cluster, inputOf(null, FOUND));
    expect(await settingsIn(cluster)).toEqual(encode(FOUND));
  });

  it('is planned for an empty cluster, or waits for the version', async () => {
    expect((await run(null, inputOf(null, FOUND)))?.changes).toHaveLength(3);
    const unknown = { ...inputOf(null, FOUND), clusterConfiguration: null };
    expect(await run(null, unknown)).toEqual({ changes: [], deferred: 'needs the version of the control plane (--kubernetes-version)' });
  });
});
