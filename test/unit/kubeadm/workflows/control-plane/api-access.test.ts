import { describe, expect, it } from 'vitest';
import { applyPhases, planPhases } from '../../../../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../../../../src/host/phase.ts';
import type { Cluster } from '../../../../../src/kube/cluster.ts';
import type { KubeObject } from '../../../../../src/kube/object.ts';
import { bootstrapRbac } from '../../../../../src/kubeadm/cluster-objects/bootstrap-rbac.ts';
import { uploadConfigKubeadm } from '../../../../../src/kubeadm/phases/upload-config.ts';
import {
  type ApiAccess,
  type ApiServerBootstrapInput,
  adminAccessWithFallback,
  deferUntilApiServer,
} from '../../../../../src/kubeadm/workflows/control-plane/api-access.ts';
import { fakeClock } from '../../../../support/fake-clock.ts';
import { fakeCluster } from '../../../../support/fake-cluster.ts';
import { fakeHost } from '../../../../support/fake-host.ts';
import { recordingReporter } from '../../../../support/recording-reporter.ts';

const BINDING = bootstrapRbac().find(({ metadata }) => metadata.name === 'kubeadm:cluster-admins') as KubeObject;
const routeOf = (cluster: Cluster | null): ApiAccess => ({ reach: async () => cluster, close: async () => undefined });

describe('the API access of an administrator', () => {
  const context: PhaseContext = { host: fakeHost(), cluster: null, clock: fakeClock(), reporter: recordingReporter() };

  it('uses another route until the API server authorizes the administrator', async () => {
    const root = fakeCluster();
    const admin = fakeCluster({ sharedWith: root, user: { name: 'kubernetes-admin', groups: ['kubeadm:cluster-admins'] } });
    const access = adminAccessWithFallback(routeOf(admin), routeOf(root));
    expect(await access.reach(context)).toBe(root);
    await root.create(BINDING);
    expect(await access.reach(context)).toBe(admin);
  });

  it('does not exist without an API server', async () => {
    expect(await adminAccessWithFallback(routeOf(null), routeOf(null)).reach(context)).toBeNull();
  });
});

describe('deferUntilApiServer', () => {
  const phase = deferUntilApiServer(uploadConfigKubeadm, (_: ApiServerBootstrapInput) => ({
    clusterConfiguration: { kubernetesVersion: 'v1.36.2' },
    currentConfiguration: null,
  }));
  const context: PhaseContext = { host: fakeHost(), cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  const inputOf = (cluster: Cluster | null, more: Partial<ApiServerBootstrapInput> = {}): ApiServerBootstrapInput => ({
    api: routeOf(cluster),
    assumeEmptyCluster: false,
    staged: false,
    ...more,
  });
  const planOf = async (input: ApiServerBootstrapInput) => (await planPhases([phase], context, input))[0]?.plan;

  it('defers a phase until the API server answers, and plans it for an empty cluster in a dry run', async () => {
    const pending = { changes: [], deferred: 'needs the API server, which starts in phase wait-control-plane' };
    expect(await planOf(inputOf(null))).toEqual(pending);
    expect(await planOf(inputOf(null, { staged: true }))).toEqual(pending);
    expect((await planOf(inputOf(null, { assumeEmptyCluster: true })))?.changes).toHaveLength(3);
    expect((await planOf(inputOf(fakeCluster())))?.changes).toHaveLength(3);
  });

  it('fails if the API server is still down when the phase runs, except in a staging directory', async () => {
    await expect(applyPhases([phase], context, inputOf(null), [])).rejects.toMatchObject({ code: 'API_SERVER_NOT_UP' });
    await applyPhases([phase], context, inputOf(null, { staged: true }), []);
  });
});
