import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UNAVAILABLE_REASON } from '../../src/dynamic/agent/status.ts';
import { planMissingRights, restoreRights } from '../../src/dynamic/use-cases/restore-agent-rights.ts';
import { readNodes } from '../../src/dynamic/workflows/read-nodes.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import { runController } from '../../src/rollouts/controller/run-controller.ts';
import { CONTROLLER_USER, installController, recordingForbidden } from '../support/controller-account.ts';
import { controllerPorts } from '../support/controller-ports.ts';
import { createAgentNode, reportTrials } from '../support/stand-in-reports.ts';
import { everything, type Right, rightsOf } from './agent-rights.ts';

interface World {
  readonly admin: Cluster;
  /** A client of a user. */
  connectAs(user: { readonly name: string; readonly groups: readonly string[] }): Promise<Cluster>;
  /** Refuses to grant rights that the requester does not have. */
  readonly refusesEscalation: boolean;
  close(): Promise<void>;
}

const RBAC = 'rbac.authorization.k8s.io';
const OWN = 'kubeletadm-system';

/** The verbs of a resource; `namespaces`: where they are granted, `*` everywhere. */
function granted(resource: string, verbs: string, { at = ['*'], names = ['*', 'x'] } = {}): readonly Right[] {
  return verbs.split(' ').flatMap((verb) => at.flatMap((namespace) => names.map((name) => `${verb} ${resource} ${namespace} ${name}`)));
}

const NODE_NAMES = ['*', 'n1', 'n2'];
/** The namespaces that are asked about. */
const ALL = ['*', OWN, 'kube-system', 'default'];

/** All rights of the controller. Nothing else may be granted. */
const GRANTED: readonly Right[] = [
  granted('kubeletadm.dev/kubeletconfigrollouts', 'list watch patch'),
  granted('kubeletadm.dev/kubeletconfigrollouts/status', 'patch'),
  granted('nodes', 'get list watch patch', { names: NODE_NAMES }),
  granted('nodes/status', 'patch', { names: NODE_NAMES }),
  granted('nodes/proxy', 'get', { names: NODE_NAMES }),
  granted('nodes/configz', 'get', { names: NODE_NAMES }),
  granted('pods', 'list', { at: ALL }),
  granted('pods/eviction', 'create', { at: ALL }),
  granted('policy/poddisruptionbudgets', 'list', { at: ALL }),
  granted('persistentvolumeclaims', 'list', { at: ALL }),
  granted('persistentvolumes', 'list'),
  granted('apps/daemonsets', 'list', { at: ALL }),
  granted('replicationcontrollers', 'get', { at: ALL }),
  granted('apps/replicasets', 'get', { at: ALL }),
  granted('apps/statefulsets', 'get', { at: ALL }),
  granted(`${RBAC}/clusterroles`, 'get create'),
  granted(`${RBAC}/clusterrolebindings`, 'get create'),
  granted('configmaps', 'get list watch create patch delete', { at: [OWN] }),
  granted('apps/controllerrevisions', 'list create update delete', { at: [OWN] }),
  granted('coordination.k8s.io/leases', 'get create update', { at: [OWN] }),
  granted(`${RBAC}/roles`, 'get create', { at: [OWN] }),
  granted(`${RBAC}/rolebindings`, 'get create', { at: [OWN] }),
  granted('events', 'list watch create', { at: ['default'] }),
  granted('services', 'list', { at: ['kube-system'] }),
].flat();

/** The rights of the installed controller: enough for all that it does, and nothing else. */
export function controllerRightsContract(name: string, start: () => Promise<World>): void {
  describe(name, () => {
    let world: World;
    let admin: Cluster;
    let limited: ReturnType<typeof recordingForbidden>;
    let other: Cluster;
    beforeAll(async () => {
      world = await start();
      ({ admin } = world);
      expect(await installController(admin)).toBeGreaterThan(8);
      limited = recordingForbidden(await world.connectAs(CONTROLLER_USER));
      other = await world.connectAs({ ...CONTROLLER_USER, name: 'system:serviceaccount:kubeletadm-system:other' });
      for (const node of ['n1', 'n2']) await createAgentNode(admin, node);
    }, 120_000);
    afterAll(async () => {
      await Promise.all([limited?.cluster.close(), other?.close()]);
      await world?.close();
    });

    it('are installed once: a second installation changes nothing', async () => {
      expect(await installController(admin)).toBe(0);
      // A new definition and new rules take effect after a moment.
      const isServed = () =>
        limited.cluster.list({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout' }).then(
          () => true,
          () => false,
        );
      await expect.poll(isServed, { timeout: 30_000 }).toBe(true);
      limited.forbidden.length = 0;
    });

    it('are those of the table, and nothing else', async () => {
      const asked = await everything(admin);
      expect(asked.length).toBeGreaterThan(1000);
      const before = await rightsOf(other, asked);
      const own = [...(await rightsOf(limited.cluster, asked))].filter((right) => !before.has(right));
      expect(own.toSorted()).toEqual(GRANTED.toSorted());
    }, 600_000);

    it('are enough for a rollout', async () => {
      const agents = new AbortController();
      const reporting = reportTrials(admin, agents.signal);
      const stop = new AbortController();
      const issues: string[] = [];
      const running = runController(
        controllerPorts(limited.cluster, stop.signal, ({ level, message }) => {
          if (level === 'warning') issues.push(message);
        }),
        { namespace: OWN, identity: 'controller-1' },
      );
      try {
        const spec = {
          nodeSelector: {},
          payload: { overlay: { maxPods: 50 } },
          strategy: { minReadySeconds: 1 },
          onFailure: 'Revert',
          deletionPolicy: 'Reset',
        };
        await admin.create({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', metadata: { name: 'pods' }, spec });
        const phase = async () => ((await admin.get(rolloutRef('pods')))?.status as { readonly phase?: string } | undefined)?.phase;
        await expect.poll(phase, { timeout: 60_000 }).toBe('Complete');
        await admin.patch(rolloutRef('pods'), 'merge', { spec: { payload: { overlay: { maxPods: 60 } }, revisionHistoryLimit: 0 } });
        await expect.poll(phase, { timeout: 60_000 }).not.toBe('Complete');
        await expect.poll(phase, { timeout: 60_000 }).toBe('Complete');
      } finally {
        stop.abort();
        agents.abort();
        await Promise.all([running, reporting]);
      }
      // Kubelets are not reachable here, and no right is missing.
      expect([...new Set(limited.forbidden)]).toEqual([]);
      expect(issues.filter((message) => /forbidden/.test(message))).toEqual([]);
    }, 240_000);

    it('are enough to restore the rules of an agent, and not to grant others', async () => {
      const conditions = [{ type: 'KubeletConfigOk', status: 'False', reason: UNAVAILABLE_REASON, message: '' }];
      await admin.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, 'strategic', { status: { conditions } }, { subresource: 'status' });
      const reporter = { report: () => undefined };
      const nodes = await readNodes(limited.cluster, ['n1']);
      await restoreRights(limited.cluster, await planMissingRights(limited.cluster, { nodes, namespace: OWN, reporter }), reporter);
      expect([...new Set(limited.forbidden)]).toEqual([]);
      if (!world.refusesEscalation) return;
      const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];
      const subjects = [{ kind: 'User', apiGroup: RBAC, name: 'mallory' }];
      for (const object of [
        { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name: 'more' }, rules },
        {
          apiVersion: `${RBAC}/v1`,
          kind: 'ClusterRoleBinding',
          metadata: { name: 'more' },
          roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'cluster-admin' },
          subjects,
        },
      ])
        await expect(limited.cluster.create(object), object.kind).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
    });
  });
}
