import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAppError } from '../../src/base/errors.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { rolloutDefinition } from '../../src/rollouts/api/crd.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';

const CONFIG_MAP = { namespace: 'kubeletadm-system', name: 'edge-abc' };
const VALID = { nodeSelector: { matchLabels: { pool: 'edge' } }, payload: { configMapRef: CONFIG_MAP } };

const QUERY: JsonObject = { address: 'http://prometheus.monitoring:9090', query: 'up', thresholdRange: { min: 0.5 } };
const JOB: JsonObject = {
  namespace: 'default',
  template: { spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'busybox' }] } } } },
};

function windows(window: JsonObject): JsonObject {
  return { ...VALID, strategy: { windows: [{ startTime: '22:00', endTime: '05:00', timeZone: 'Europe/Berlin', ...window }] } };
}

function gates(...each: readonly JsonObject[]): JsonObject {
  return { ...VALID, strategy: { gates: each.map((gate) => ({ name: 'smoke-test', ...gate })) } };
}

function rollout(name: string, spec: JsonObject) {
  return { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', metadata: { name }, spec };
}

/** Creates the CustomResourceDefinition, and waits until its objects are served: a moment after it is established. */
export async function defineRollouts(cluster: Cluster): Promise<void> {
  await cluster.create(rolloutDefinition());
  for (let attempt = 0; attempt < 300; attempt++) {
    const found = await cluster.list({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout' }).catch((error: unknown) => {
      if (isAppError(error)) return null;
      throw error;
    });
    if (found !== null) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The rules of the API that every API server applies after the definition was created. */
export function rolloutsApiContract(name: string, open: () => Promise<{ readonly cluster: Cluster; close(): Promise<void> }>): void {
  describe(`KubeletConfigRollout: ${name}`, () => {
    let world: Awaited<ReturnType<typeof open>>;
    let cluster: Cluster;
    beforeAll(async () => {
      world = await open();
      ({ cluster } = world);
      await defineRollouts(cluster);
    }, 60_000);
    afterAll(() => world.close());

    it('fills in defaults, and drops unknown fields and the status', async () => {
      const created = await cluster.create({ ...rollout('defaults', { ...VALID, unknown: 1 }), status: { phase: 'Complete' } });
      expect(created.spec).toEqual({
        nodeSelector: { matchLabels: { pool: 'edge' } },
        payload: { configMapRef: { ...CONFIG_MAP, kubeletConfigKey: 'kubelet' } },
        strategy: {
          canary: { count: 1 },
          maxUnavailable: 1,
          maxFailures: 0,
          minReadySeconds: 30,
          until: 'Trial',
          allow: 'new-pods-only',
          drain: { force: false, timeoutSeconds: 600, settleSeconds: 120 },
        },
        paused: false,
        progressDeadlineSeconds: 900,
        onFailure: 'Stop',
        revisionHistoryLimit: 10,
        deletionPolicy: 'Leave',
      });
      expect(created.status).toBeUndefined();
      expect(created.metadata.generation).toBe(1);
    });

    it('keeps all fields of an overlay', async () => {
      const overlay = { maxPods: 50, evictionHard: { 'memory.available': '100Mi' } };
      const created = await cluster.create(rollout('overlay', { nodeSelector: {}, payload: { overlay } }));
      expect(created.spec).toMatchObject({ nodeSelector: {}, payload: { overlay } });
    });

    it('keeps all fields of the Job of a gate, and fills in the defaults of gates', async () => {
      const created = await cluster.create(rollout('gates', gates({ job: JOB })));
      const filledIn = { name: 'smoke-test', after: 'EachBatch', timeoutSeconds: 300, job: JOB };
      expect(created.spec).toMatchObject({ strategy: { gates: [filledIn] } });
      const query = await cluster.create(rollout('query', gates({ prometheus: QUERY })));
      expect(query.spec).toMatchObject({ strategy: { gates: [{ prometheus: { ...QUERY, retries: 0, intervalSeconds: 10 } }] } });
    });

    it('sends changes to a watch', async () => {
      const kind = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout' };
      const { resourceVersion } = await cluster.list(kind);
      await cluster.create(rollout('watched', VALID));
      await cluster.patch(rolloutRef('watched'), 'merge', { spec: { paused: true } });
      const abort = new AbortController();
      const seen: unknown[] = [];
      for await (const { type, object } of cluster.watch(kind, { resourceVersion, signal: abort.signal })) {
        seen.push([type, object.metadata.name, (object.spec as JsonObject).paused]);
        // The third event arrives while the watch is open.
        if (seen.length === 2) await cluster.delete(rolloutRef('watched'));
        if (seen.length === 3) break;
      }
      abort.abort();
      expect(seen).toEqual([
        ['ADDED', 'watched', false],
        ['MODIFIED', 'watched', true],
        ['DELETED', 'watched', true],
      ]);
    });

    it('has a status subresource, whose changes keep the generation', async () => {
      await cluster.create(rollout('status', VALID));
      const patched = await cluster.patch(
        rolloutRef('status'),
        'merge',
        { spec: { paused: true }, status: { phase: 'Progressing' } },
        { subresource: 'status' },
      );
      expect(patched).toMatchObject({ metadata: { generation: 1 }, spec: { paused: false }, status: { phase: 'Progressing' } });
      const paused = await cluster.patch(rolloutRef('status'), 'merge', { spec: { paused: true }, status: { phase: 'Complete' } });
      expect(paused).toMatchObject({ metadata: { generation: 2 }, spec: { paused: true }, status: { phase: 'Progressing' } });
    });

    it('is watched', async () => {
      const kind = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout' };
      await cluster.create(rollout('watched', VALID));
      const { resourceVersion } = await cluster.list(kind);
      const stop = new AbortController();
      const next = cluster.watch(kind, { resourceVersion, signal: stop.signal })[Symbol.asyncIterator]().next();
      await cluster.patch(rolloutRef('watched'), 'merge', { spec: { paused: true } });
      expect((await next).value).toMatchObject({ type: 'MODIFIED', object: { metadata: { name: 'watched' }, spec: { paused: true } } });
      stop.abort();
    });

    it('refuses a status write that was based on an older version', async () => {
      const { metadata } = await cluster.create(rollout('fenced', VALID));
      const ref = rolloutRef('fenced');
      const status = (leader: string) =>
        cluster.patch(
          ref,
          'merge',
          { metadata: { resourceVersion: metadata.resourceVersion ?? '' }, status: { leader } },
          { subresource: 'status' },
        );
      await status('second');
      await expect(status('first')).rejects.toMatchObject({ code: 'CLUSTER_CONFLICT' });
    });

    it.each<[string, JsonObject, RegExp]>([
      ['no payload', { nodeSelector: {}, payload: {} }, /exactly one of configMapRef and overlay is required/],
      [
        'two payloads',
        { nodeSelector: {}, payload: { configMapRef: CONFIG_MAP, overlay: {} } },
        /exactly one of configMapRef and overlay is required/,
      ],
      [
        'an overlay with a header',
        { nodeSelector: {}, payload: { overlay: { kind: 'KubeletConfiguration' } } },
        /without apiVersion and kind/,
      ],
      ['no selector', { payload: VALID.payload }, /nodeSelector: Required value/],
      ['a limit of 0', { ...VALID, strategy: { maxUnavailable: 0 } }, /a number of at least 1, or a percentage from 1% to 100%/],
      ['a limit of 0 %', { ...VALID, strategy: { maxUnavailable: '0%' } }, /a number of at least 1, or a percentage from 1% to 100%/],
      [
        'a canary of 101 %',
        { ...VALID, strategy: { canary: { count: '101%' } } },
        /a number of at least 0, or a percentage from 0% to 100%/,
      ],
      ['a limit of another type', { ...VALID, strategy: { maxUnavailable: true } }, /maxUnavailable/],
      ['an unknown class', { ...VALID, strategy: { allow: 'all' } }, /Unsupported value: "all"/],
      [
        'In without values',
        { ...VALID, nodeSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
        /values are required for In and NotIn/,
      ],
      [
        'Exists with values',
        { ...VALID, nodeSelector: { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] } },
        /values are required for In and NotIn/,
      ],
      ['an order of zones without a key', { ...VALID, strategy: { topologyOrder: 'Spread' } }, /topologyOrder requires topologyKey/],
      ['a window of an unknown time zone', windows({ timeZone: 'Europe/Atlantis' }), /the name of a time zone/],
      ['an offset as a time zone', windows({ timeZone: '+01:00' }), /the name of a time zone/],
      ['a window at 24:00', windows({ endTime: '24:00' }), /endTime in body should match/],
      ['a window on a day twice', windows({ days: ['Mon', 'Mon'] }), /Duplicate value: "Mon"/],
      ['a gate without a check', gates({}), /exactly one of prometheus and job is required/],
      ['a gate with two checks', gates({ prometheus: QUERY, job: JOB }), /exactly one of prometheus and job is required/],
      ['a range without a limit', gates({ prometheus: { ...QUERY, thresholdRange: {} } }), /min, max or both are required/],
      ['an empty range', gates({ prometheus: { ...QUERY, thresholdRange: { min: 1, max: 0.5 } } }), /min is not above max/],
      ['a URL with credentials', gates({ prometheus: { ...QUERY, address: 'http://user@host' } }), /address in body should match/],
      ['a Job without a spec', gates({ job: { ...JOB, template: {} } }), /template.spec: Required value/],
      ['two gates of a name', gates({ job: JOB }, { prometheus: QUERY }), /Duplicate value: \{"name":"smoke-test"\}/],
      ['a deadline of 0', { ...VALID, progressDeadlineSeconds: 0 }, /progressDeadlineSeconds/],
    ])('refuses %s', async (_, spec, message) => {
      await expect(cluster.create(rollout('refused', spec))).rejects.toMatchObject({
        code: 'CLUSTER_INVALID',
        message: expect.stringMatching(message),
      });
    });

    it.each<[string, JsonObject]>([
      ['percentages', { ...VALID, strategy: { maxUnavailable: '100%', canary: { count: '0%' } } }],
      ['numbers', { ...VALID, strategy: { maxUnavailable: 5, canary: { count: 0 } } }],
      [
        'expressions',
        {
          ...VALID,
          nodeSelector: {
            matchExpressions: [
              { key: 'a', operator: 'NotIn', values: ['b'] },
              { key: 'c', operator: 'DoesNotExist' },
            ],
          },
        },
      ],
      ['an order', { ...VALID, strategy: { order: [{ matchLabels: { zone: 'a' } }, {}], topologyKey: 'topology.kubernetes.io/zone' } }],
      ['windows', windows({ days: ['Fri', 'Sat'], timeZone: 'America/Argentina/Buenos_Aires' })],
      ['a gate with a query', gates({ prometheus: QUERY })],
      ['a gate with a Job', gates({ job: JOB, after: 'End' })],
    ])('accepts %s', async (_, spec) => {
      const { metadata } = await cluster.create(rollout('accepted', spec));
      expect(metadata.name).toBe('accepted');
      await cluster.delete(rolloutRef('accepted'));
    });

    it('refuses a name of more than 52 characters', async () => {
      await expect(cluster.create(rollout('a'.repeat(53), VALID))).rejects.toMatchObject({
        message: expect.stringContaining('at most 52 characters'),
      });
    });
  });
}
