import { EventEmitter, once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../lab/api-server/pki.ts';
import { systemClock } from '../../src/base/adapters/clock-system.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { listWatch } from '../../src/kube/list-watch.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { type Rollout, readRollout, rolloutRef } from '../../src/rollouts/api/rollout.ts';
import type { RolloutStatus } from '../../src/rollouts/api/schema.ts';
import { CONTROLLER_USER, TEST_IMAGE } from '../support/controller-account.ts';
import {
  type AuditedWrite,
  auditedWrites,
  auditFlags,
  type ControllerProcess,
  startController,
  startFrontend,
} from '../support/controller-processes.ts';
import { type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { whyNoKubelet } from '../support/real-apiserver.ts';
import { AGENT_BUNDLE, CGROUP_V1_CONFIG, joinForAgents, type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const TITLE = 'rollouts over real kubelets';
const FIRST = ['node1', 'node2', 'node3'];
const LABEL = 'example.com/pool=edge';
const hasKubectl = existsSync(join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubectl'));
const missing = whyNoKubelet() ?? (hasKubectl ? null : 'kubectl not found (KUBEBUILDER_ASSETS)') ?? whyNoLabHosts();
const OTHER_CA = '/etc/kubernetes/pki/other.crt';
const nodeRef = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name });
const ROLLOUTS = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout' };

describe.skipIf(requirement(TITLE, missing))(TITLE, () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-real-rollouts-'));
  const conf = join(directory, 'admin.conf');
  let world: RealCluster;
  let cluster: Cluster;
  let lab: LabHosts;
  let frontend: Awaited<ReturnType<typeof startFrontend>>;
  const controllers: ControllerProcess[] = [];
  const ended = new AbortController();
  const observers: Promise<void>[] = [];
  let nodes = FIRST;
  /** The values of maxPods that each kubelet has served at configz, without repetitions. */
  const ran = new Map<string, number[]>();
  /** The capacity for pods that each kubelet has reported for its Node, without repetitions. */
  const reported = new Map<string, number[]>();
  /** Rollouts that were reported as complete while a kubelet did not run their configuration. */
  const falselyComplete: string[] = [];

  const kubeletadm = async (...argv: readonly string[]): Promise<CliResult> => {
    const result = await runCommand([...argv, '--kubeconfig', conf]);
    expect(result.code, `${argv.join(' ')}: ${result.stderr}`).toBe(0);
    return result;
  };
  const enable = (...hosts: readonly string[]): Promise<CliResult> =>
    kubeletadm(
      'dynamic',
      'enable',
      ...hosts,
      '--ssh-config',
      lab.sshConfig,
      '--program',
      AGENT_BUNDLE,
      '--spread',
      '0s',
      '--trial',
      '25s',
      '--allow',
      'unsafe',
    );
  const maxPodsOf = async (node: string): Promise<number> => {
    const { kubeletconfig } = await cluster.getRaw(`/api/v1/nodes/${node}/proxy/configz`);
    return Number((kubeletconfig as JsonObject).maxPods);
  };
  /** The value of maxPods in the configz of each kubelet; null: the kubelet does not answer. */
  const running = async (): Promise<Readonly<Record<string, number | null>>> =>
    Object.fromEntries(await Promise.all(nodes.map(async (node) => [node, await maxPodsOf(node).catch(() => null)])));
  const all = (maxPods: number) => Object.fromEntries(nodes.map((node) => [node, maxPods]));
  const restarts = (node: string): number => Number(lab.run(node, 'journalctl -u kubelet -o cat --no-pager | grep -c "^Started"'));

  const rolloutOf = async (name = 'edge'): Promise<Rollout> => {
    const read = readRollout((await cluster.get(rolloutRef(name))) ?? { apiVersion: '', kind: '', metadata: { name } });
    if ('errors' in read) throw new Error(read.errors.join('; '));
    return read.rollout;
  };
  /** Waits for a state of the rollout that its controller has written for the present object. */
  const reaches = async (
    what: string,
    isTrue: (status: RolloutStatus) => boolean,
    { name = 'edge', timeoutMs = 120_000 } = {},
  ): Promise<RolloutStatus> => {
    let last: Rollout | null = null;
    for (const end = Date.now() + timeoutMs; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100))) {
      last = await rolloutOf(name).catch(() => last);
      if (last !== null && last.status.observedGeneration === last.generation && isTrue(last.status)) return last.status;
    }
    const logs = controllers.map((one) => `${one.id}:\n${one.output()}`).join('\n');
    throw new Error(`never: ${what}: ${JSON.stringify(last?.status)}\n${JSON.stringify(await running())}\n${logs}`);
  };
  const phase = (wanted: RolloutStatus['phase'], options: Parameters<typeof reaches>[2] = {}) =>
    reaches(`${wanted}`, (status) => status.phase === wanted, options);
  const started = async (): Promise<string> => {
    const isStarted = ({ nodes: listed = [] }: RolloutStatus) => listed.some(({ state }) => state === 'InProgress');
    const { nodes: listed = [] } = await reaches('a node is in progress', isStarted);
    return listed.find(({ state }) => state === 'InProgress')?.name ?? '';
  };
  const setPayload = (overlay: JsonObject) =>
    cluster.patch(rolloutRef('edge'), 'json', [{ op: 'replace', path: '/spec/payload', value: { overlay } }]);
  const completes = async (maxPods: number): Promise<void> => {
    await phase('Complete', { timeoutMs: 240_000 });
    expect(await running()).toEqual(all(maxPods));
  };
  const leader = async (): Promise<ControllerProcess> => {
    for (const one of controllers) if (/^kubeletadm_controller_leader 1$/m.test(await one.metrics().catch(() => ''))) return one;
    throw new Error('no controller is the leader');
  };

  beforeAll(async () => {
    const flags = [...auditFlags(directory), '--etcd-compaction-interval=20s'];
    world = await startRealCluster(4, directory, CGROUP_V1_CONFIG, { reachesKubelets: true, flags });
    ({ cluster, lab } = world);
    await joinForAgents(lab, directory, FIRST, '--node-labels', LABEL);
    const other = (await createCa()).certPem;
    for (const host of FIRST) lab.put(host, OTHER_CA, other);
    await kubeletadm('controller', 'install', '--image', TEST_IMAGE);
    await enable(...FIRST);
    frontend = await startFrontend(world.api.url);
    controllers.push(await startController(world.api, directory, frontend.url));
    observers.push(observeKubelets(), observeRollouts());
  }, 900_000);
  afterAll(async () => {
    ended.abort();
    await Promise.all([...observers, ...controllers.map((one) => one.stop())]);
    frontend?.close();
    await world?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  function note(values: Map<string, number[]>, node: string, value: number | null): void {
    const before = values.get(node) ?? [];
    if (value !== null && !Number.isNaN(value) && before.at(-1) !== value) values.set(node, [...before, value]);
  }

  async function observeKubelets(): Promise<void> {
    while (!ended.signal.aborted) {
      for (const [node, maxPods] of Object.entries(await running())) {
        const object = await cluster.get(nodeRef(node)).catch(() => null);
        note(ran, node, maxPods);
        note(reported, node, Number((object?.status as { readonly capacity?: JsonObject } | undefined)?.capacity?.pods ?? Number.NaN));
      }
      await systemClock.sleep(300, ended.signal).catch(() => undefined);
    }
  }

  async function observeRollouts(): Promise<void> {
    const onObjects = (objects: ReadonlyMap<string, KubeObject>): void => {
      for (const object of objects.values()) {
        const read = readRollout(object);
        if ('errors' in read) continue;
        const { name, status, generation, spec } = read.rollout;
        if (status.phase !== 'Complete' || status.observedGeneration !== generation) continue;
        void running().then((now) => {
          if (Object.values(now).some((maxPods) => maxPods !== spec.payload.overlay?.maxPods))
            falselyComplete.push(`${name} ${JSON.stringify(spec.payload)} ${JSON.stringify(now)}`);
        });
      }
    };
    await listWatch(ROLLOUTS, {
      cluster,
      clock: systemClock,
      random: Math.random,
      signal: ended.signal,
      onObjects,
      onIssue: () => undefined,
    });
  }

  it('roll back the canary whose kubelet becomes unhealthy, revert, and touch no other node', async () => {
    const strategy = { maxUnavailable: 3, minReadySeconds: 1, until: 'Good', allow: 'unsafe' };
    const spec = {
      nodeSelector: { matchLabels: { 'example.com/pool': 'edge' } },
      payload: { overlay: { maxPods: 60 } },
      strategy,
      onFailure: 'Revert',
    };
    await cluster.create({ ...ROLLOUTS, metadata: { name: 'edge' }, spec });
    await completes(60);
    const before = FIRST.map(restarts);
    await setPayload({ maxPods: 61, authentication: { x509: { clientCAFile: OTHER_CA } } });
    const { failedRevision, updateRevision } = await phase('Reverted', { timeoutMs: 240_000 });
    expect(failedRevision).toBe(updateRevision);
    await expect.poll(running, { timeout: 30_000 }).toEqual(all(60));
    const canaries = FIRST.filter((node) => reported.get(node)?.includes(61));
    expect(canaries, JSON.stringify([...reported])).toHaveLength(1);
    expect((await cluster.get(nodeRef(canaries[0] ?? '')))?.spec).not.toHaveProperty('unschedulable');
    // One start with the configuration, one with the last known good one.
    expect(FIRST.map((node, i) => restarts(node) - (before[i] ?? 0))).toEqual(FIRST.map((node) => (canaries.includes(node) ? 2 : 0)));
  }, 600_000);

  it('return to the revision before by undo, start no node while paused, and continue', async () => {
    const before = FIRST.map(restarts);
    await kubeletadm('rollout', 'undo', 'edge');
    await completes(60);
    expect(FIRST.map(restarts)).toEqual(before);
    await cluster.patch(rolloutRef('edge'), 'merge', { spec: { strategy: { until: 'Trial', maxUnavailable: 1 } } });
    await setPayload({ maxPods: 62 });
    await started();
    await kubeletadm('rollout', 'pause', 'edge');
    await reaches('paused, with no node in progress', ({ phase: now, counts }) => now === 'Paused' && counts?.inProgress === 0);
    const held = await running();
    const changed = Object.values(held).filter((maxPods) => maxPods === 62).length;
    expect([1, 2]).toContain(changed);
    await systemClock.sleep(15_000);
    expect(await running()).toEqual(held);
    await kubeletadm('rollout', 'resume', 'edge');
    await completes(62);
    await kubeletadm('rollout', 'undo', 'edge');
    await completes(60);
  }, 600_000);

  it('give a Node that was created again its configuration first, and a Node that joins later', async () => {
    await kubeletadm('rollout', 'pause', 'edge');
    await setPayload({ maxPods: 63 });
    await phase('Paused');
    const source = async () => (await cluster.get(nodeRef('node2')))?.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION] ?? null;
    const assigned = await source();
    const uid = (await cluster.get(nodeRef('node2')))?.metadata.uid;
    await cluster.delete(nodeRef('node2'));
    lab.run('node2', 'systemctl restart kubelet');
    await untilTrue(async () => ![uid, undefined].includes((await cluster.get(nodeRef('node2')))?.metadata.uid), 60_000);
    await expect.poll(source, { timeout: 60_000 }).toBe(assigned);
    await reaches('the Node has its configuration', ({ counts }) => counts?.inProgress === 0);
    await expect.poll(running, { timeout: 60_000 }).toEqual(all(60));
    await kubeletadm('rollout', 'resume', 'edge');
    await started();
    await joinForAgents(lab, directory, ['node4'], '--node-labels', LABEL);
    nodes = [...FIRST, 'node4'];
    await reaches('the new Node waits for its agent', ({ nodes: listed = [] }) =>
      listed.some(({ name, state }) => name === 'node4' && state === 'NotEnabled'),
    );
    await enable('node4');
    await completes(63);
  }, 600_000);

  it('end with the newest payload if it is edited meanwhile', async () => {
    for (const maxPods of [64, 65]) {
      await setPayload({ maxPods });
      await started();
    }
    await cluster.patch(rolloutRef('edge'), 'merge', { spec: { strategy: { maxUnavailable: 2, canary: { count: 2 } } } });
    await untilTrue(async () => Object.values(await running()).includes(65), 60_000);
    await setPayload({ maxPods: 66 });
    await completes(66);
    expect([...ran.values()].some((values) => values.includes(65) && values.at(-1) === 66)).toBe(true);
  }, 600_000);

  it('refuse the younger of two objects that select a node, and continue the older one', async () => {
    const young = { nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'node1' } }, payload: { overlay: { maxPods: 99 } } };
    await cluster.create({ ...ROLLOUTS, metadata: { name: 'a-younger' }, spec: young });
    const { conditions = [] } = await phase('Refused', { name: 'a-younger' });
    expect(conditions.find(({ status }) => status === 'True')?.message).toBe(
      'Node node1 is selected by an older KubeletConfigRollout: edge',
    );
    await setPayload({ maxPods: 67 });
    await completes(67);
    await phase('Refused', { name: 'a-younger' });
    await cluster.delete(rolloutRef('a-younger'));
    expect(ran.get('node1')).not.toContain(99);
  }, 600_000);

  it('are continued by another controller if the leader is stopped for longer than its Lease, during the assignment of a Node', async () => {
    const first = await leader();
    controllers.push(await startController(world.api, directory, frontend.url));
    const slow = await holdAssignment();
    await setPayload({ maxPods: 68 });
    const node = await slow.held;
    first.child.kill('SIGSTOP');
    // An assignment that is completed before the next leader takes over the Node is that of a recorded node.
    const successor = async () => (await cluster.get(nodeRef(node)))?.metadata.annotations?.['kubeletadm.dev/rollout-leader'];
    await untilTrue(async () => (await successor()) !== undefined, 40_000);
    await slow.release();
    const own = ({ by, what, assigns }: AuditedWrite) => by === first.id && what === `nodes/${node}` && assigns !== null;
    const late = () => auditedWrites(directory).findLast(own)?.code;
    await expect.poll(late, { timeout: 20_000 }).toBe(409);
    first.child.kill('SIGCONT');
    await completes(68);
    expect(first.child.exitCode).toBe(null);
  }, 600_000);

  it('are continued after a restart of the API server, while the leader is stopped', async () => {
    const first = await leader();
    await setPayload({ maxPods: 69 });
    await started();
    const { leader: before } = (await rolloutOf()).status;
    first.child.kill('SIGSTOP');
    await world.api.restart();
    await untilTrue(async () => (await rolloutOf()).status.leader !== before, 60_000);
    first.child.kill('SIGCONT');
    await completes(69);
  }, 600_000);

  it('are continued at another API server that does not know the history of the watches', async () => {
    const second = await world.api.startAnother([]);
    const first = await leader();
    await setPayload({ maxPods: 70 });
    await started();
    frontend.to(second.url);
    await world.api.restart();
    await completes(70);
    expect(await leader()).toBe(first);
    expect(await first.metrics()).toMatch(/^kubeletadm_api_errors_total\{verb="watch",code="CLUSTER_GONE"\} [1-9]/m);
  }, 600_000);

  it('were never reported as complete before all kubelets ran the configuration', () => {
    expect(falselyComplete).toEqual([]);
  });

  it('were changed only by the holder of the Lease, and each Node was assigned a configuration once', () => {
    let holder = '';
    const others: string[] = [];
    const last = new Map<string, string>();
    const repeated: string[] = [];
    for (const { by, what, code, body, assigns } of auditedWrites(directory)) {
      if (code >= 300) continue;
      if (what.startsWith('leases/')) holder = (body.spec as JsonObject).holderIdentity === '' ? '' : by;
      else if (/^(?:nodes|kubeletconfigrollouts)\//.test(what) && by !== holder) others.push(`${by} ${what}`);
      if (assigns === null) continue;
      if (last.get(what) === assigns) repeated.push(what);
      last.set(what, assigns);
    }
    expect(others).toEqual([]);
    // Its Node was created again.
    expect(repeated).toEqual(['nodes/node2']);
  });

  /** An admission webhook that holds the next assignment of a controller in the API server. */
  async function holdAssignment(): Promise<{ readonly held: Promise<string>; release(): Promise<void> }> {
    const { certPem, keyPem } = await world.api.ca.issueServer(['127.0.0.1']);
    const events = new EventEmitter();
    let isHeld = false;
    const server = createServer({ cert: certPem, key: keyPem }, async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { uid, name } = (JSON.parse(Buffer.concat(chunks).toString('utf8')) as { readonly request: { uid: string; name: string } })
        .request;
      if (!isHeld) {
        isHeld = true;
        events.emit('held', name);
        await once(events, 'released');
      }
      response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true } }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    const { port } = server.address() as AddressInfo;
    const ref = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration', name: 'slow' };
    const source = `metadata.?annotations['${CONFIG_SOURCE_ANNOTATION}']`;
    await cluster.create({
      apiVersion: ref.apiVersion,
      kind: ref.kind,
      metadata: { name: ref.name },
      webhooks: [
        {
          name: 'slow.example.com',
          clientConfig: { url: `https://127.0.0.1:${port}`, caBundle: Buffer.from(world.api.ca.certPem).toString('base64') },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['nodes'] }],
          matchConditions: [
            { name: 'controller', expression: `request.userInfo.username == '${CONTROLLER_USER.name}'` },
            { name: 'assignment', expression: `object.${source} != oldObject.${source}` },
          ],
          timeoutSeconds: 30,
          failurePolicy: 'Fail',
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    });
    return {
      held: once(events, 'held').then(([name]) => String(name)),
      release: async () => {
        await cluster.delete(ref);
        events.emit('released');
        server.close();
      },
    };
  }
});
