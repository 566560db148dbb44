import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import { fakeCluster } from '../support/fake-cluster.ts';
import { type RolloutWorld, rolloutWorld, type WorldController } from '../support/rollout-world.ts';
import { type RunningUi, startUi } from '../support/run-ui.ts';

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

let world: RolloutWorld;
let controller: WorldController;
let ui: RunningUi;
beforeEach(async () => {
  world = await rolloutWorld(['n1', 'n2', 'n3']);
  controller = world.controller();
  for (const maxPods of [50, 60]) {
    const spec = { nodeSelector: {}, payload: { overlay: { maxPods } }, strategy: { minReadySeconds: 1 } };
    await (maxPods === 50 ? world.create('edge', spec) : world.patch('edge', spec));
    await controller.run(maxPods === 50 ? 120 : 5);
  }
  ui = await startUi(world.cluster);
});
afterEach(async () => {
  expect(await ui.stop()).toBe(0);
});

/** The origin of the page. */
const origin = (): string => new URL(ui.url).origin;

function send({ method = 'GET', path = '', headers = {}, body }: Sent) {
  const { pathname, hostname, port } = new URL(path, ui.url);
  return new Promise<{ readonly status: number; readonly text: string; readonly headers: Readonly<Record<string, unknown>> }>(
    (resolve, reject) => {
      const sent = request({ hostname, port, path: pathname, method, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
      });
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    },
  );
}

async function act(body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const all = { origin: origin(), 'content-type': 'application/json', ...headers };
  const { status, text } = await send({ method: 'POST', path: 'act', headers: all, body });
  return { status, answer: status === 200 ? (JSON.parse(text) as Record<string, unknown>) : text };
}

const spec = async (): Promise<unknown> => (await world.cluster.get(rolloutRef('edge')))?.spec;

describe('the server of ui', () => {
  it('serves the page on the loopback address, only below the token, and lets no other site read or embed it', async () => {
    expect(ui.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{16,}\/$/);
    const { status, text, headers } = await send({});
    expect(status).toBe(200);
    expect(text).toContain('<h2 id="rollout-edge">edge');
    expect(text.replaceAll('&#x27;', "'").replaceAll('&#x3D;', '=')).toMatch(
      /content="default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+' 'sha256-\S+'; connect-src 'self'; base-uri 'none'; form-action 'none'"/,
    );
    expect(headers).toMatchObject({
      'content-security-policy': "frame-ancestors 'none'",
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers['access-control-allow-origin']).toBeUndefined();
    for (const path of ['/', '/events', '/act', `${new URL(ui.url).pathname.slice(0, -2)}/`])
      expect((await send({ path })).status, path).toBe(404);
  });

  it('refuses the name of another site as Host, and other methods', async () => {
    expect((await send({ headers: { host: 'evil.example' } })).status).toBe(421);
    for (const method of ['PUT', 'DELETE', 'OPTIONS']) expect((await send({ method, path: 'act' })).status, method).toBe(405);
    expect((await send({ path: 'act' })).status).toBe(405);
    expect((await send({ method: 'POST' })).status).toBe(405);
  });

  it.each([
    ['of another site', { origin: 'http://evil.example' }, 403],
    ['of another port', { origin: 'http://127.0.0.1:1' }, 403],
    ['without an origin', { origin: '' }, 403],
    ['of a form', { 'content-type': 'text/plain' }, 415],
  ])('refuses an action %s', async (_, headers, status) => {
    expect((await act({ action: 'pause', rollout: 'edge' }, headers)).status).toBe(status);
    const wrongToken = await send({
      method: 'POST',
      path: `/${'0'.repeat(32)}/act`,
      headers: { origin: origin(), 'content-type': 'application/json' },
      body: { action: 'pause', rollout: 'edge' },
    });
    expect(wrongToken.status).toBe(404);
    expect(await spec()).not.toMatchObject({ paused: true });
  });
});

describe('ui', () => {
  it('ends with code 2 if the port is in use', async () => {
    const second = await startUi(world.cluster, ['--port', new URL(ui.url).port]);
    expect([await second.stop(), second.url]).toEqual([2, '']);
    expect(second.stderr()).toMatch(/cannot serve the page on 127\.0\.0\.1, port \d+: .*\[PAGE_NOT_SERVED\]/);
  });

  it('ends with an error if the rollouts cannot be listed', async () => {
    const viewer = fakeCluster({ sharedWith: world.fleet.cluster, user: { name: 'viewer', groups: [] } });
    const refused = await startUi(viewer);
    expect([await refused.stop(), refused.url]).toEqual([1, '']);
    expect(refused.stderr()).toContain('[CLUSTER_FORBIDDEN]');
  });
});

describe('the actions of ui', () => {
  it('pause and resume a rollout, and are reported', async () => {
    expect((await act({ action: 'pause', rollout: 'edge' })).answer).toEqual({ message: 'rollout edge: paused' });
    expect(await spec()).toMatchObject({ paused: true });
    expect((await act({ action: 'pause', rollout: 'edge' })).answer).toEqual({ message: 'rollout edge: unchanged, already paused' });
    expect((await act({ action: 'resume', rollout: 'edge' })).answer).toEqual({ message: 'rollout edge: resumed' });
    expect(await spec()).toMatchObject({ paused: false });
    expect(ui.stderr()).toContain('rollout edge: paused');
  });

  it('show the changed fields of two revisions, and undo a rollout after a preview', async () => {
    const changed = (text: string, impact: string) => ({ fields: [{ text, impact, why: '' }] });
    expect((await act({ action: 'diff', rollout: 'edge', revision: 1, toRevision: 2 })).answer).toEqual(
      changed('maxPods: 50 → 60', 'safe'),
    );
    expect((await act({ action: 'preview-undo', rollout: 'edge', toRevision: 1 })).answer).toEqual(
      changed('maxPods: 60 → 50', 'new-pods-only'),
    );
    expect(await spec()).toMatchObject({ payload: { overlay: { maxPods: 60 } } });
    expect((await act({ action: 'undo', rollout: 'edge', toRevision: 1 })).answer).toEqual({
      message: 'rollout edge: rolled back to revision 1',
    });
    expect(await spec()).toMatchObject({ payload: { overlay: { maxPods: 50 } }, strategy: { minReadySeconds: 1 } });
  });

  it.each([
    ['an unknown rollout', { action: 'pause', rollout: 'none' }, /ROLLOUT_NOT_FOUND/],
    ['an unknown revision', { action: 'undo', rollout: 'edge', toRevision: 9 }, /ROLLOUT_NO_REVISION/],
    ['an unknown action', { action: 'delete', rollout: 'edge' }, /not an action of this page/],
    ['another field', { action: 'pause', rollout: 'edge', namespace: 'x' }, /not an action of this page/],
  ])('refuse %s', async (_, body, problem) => {
    const before = await spec();
    expect(await act(body)).toEqual({ status: 200, answer: { problem: expect.stringMatching(problem) } });
    expect(await spec()).toEqual(before);
  });

  it('show a refusal of the API server', async () => {
    world.fleet.cluster.failNext('patch', new Error('forbidden'));
    expect((await act({ action: 'pause', rollout: 'edge' })).answer).toEqual({ problem: 'forbidden' });
  });
});
