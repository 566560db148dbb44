import { describe, expect, it } from 'vitest';
import type { PhaseContext } from '../../../../../src/host/phase.ts';
import type { Cluster } from '../../../../../src/kube/cluster.ts';
import type { KubeObject } from '../../../../../src/kube/object.ts';
import { bootstrapRbac } from '../../../../../src/kubeadm/cluster-objects/bootstrap-rbac.ts';
import { type ApiAccess, adminAccessWithFallback } from '../../../../../src/kubeadm/workflows/control-plane/api-access.ts';
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
