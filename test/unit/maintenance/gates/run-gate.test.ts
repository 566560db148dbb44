import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { AppError, interrupted } from '../../../../src/base/errors.ts';
import type { JsonObject } from '../../../../src/base/json.ts';
import { nodeHttpsClient } from '../../../../src/kube/adapters/https-client.ts';
import { type KubeObject, refOf } from '../../../../src/kube/object.ts';
import type { GatePorts } from '../../../../src/maintenance/gates/gate-ports.ts';
import type { PreparedGate } from '../../../../src/maintenance/gates/rollout-settings.ts';
import { runGate } from '../../../../src/maintenance/gates/run-gate.ts';
import { type FakeClock, fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';

const BATCH = { names: ['n1', 'n2'], isCanary: true, number: 2, isLast: false };
const GATE = { name: 'smoke-test', directory: '/srv/fleet' };

function ports(more: Partial<GatePorts> = {}): GatePorts & { readonly clock: FakeClock } {
  return {
    clock: fakeClock(),
    signal: new AbortController().signal,
    runLocal: async () => '0\n',
    web: nodeHttpsClient({}),
    cluster: null,
    input: { readText: async () => '' },
    newId: async () => '0123456789abcdef',
    ...more,
  } as GatePorts & { readonly clock: FakeClock };
}

describe('a command as a gate', () => {
  it('runs in the directory of its file, with what just happened in its environment', async () => {
    const ran: (readonly string[])[] = [];
    const runLocal: GatePorts['runLocal'] = async (argv, { onStderr }) => {
      ran.push(argv);
      onStderr('line 1\nline 2\n');
      return '3\n';
    };
    const gate: PreparedGate = { ...GATE, command: ['./smoke.sh', '--fast'] };
    expect(await runGate(ports({ runLocal }), gate, BATCH)).toEqual({
      isPassed: false,
      answer: 'exit code 3',
      output: 'line 1\nline 2',
      attempts: 1,
    });
    expect(ran[0]?.slice(4)).toEqual([
      '/srv/fleet',
      'env',
      'KUBELETADM_GATE=smoke-test',
      'KUBELETADM_BATCH=2',
      'KUBELETADM_CANARY=true',
      'KUBELETADM_LAST=false',
      'KUBELETADM_HOSTS=n1 n2',
      './smoke.sh',
      '--fast',
    ]);
  });

  it('is repeated after the interval until it passes', async () => {
    const codes = ['1', '1', '0'];
    const given = ports({ runLocal: async () => codes.shift() ?? '' });
    const gate: PreparedGate = { ...GATE, command: ['true'], retries: 5, interval: '30s' };
    expect(await runGate(given, gate, BATCH)).toMatchObject({ isPassed: true, attempts: 3 });
    expect(given.clock.elapsedMs).toBe(60_000);
  });

  it('is not repeated beyond its time limit, and an error is a failed attempt', async () => {
    const runLocal = async (): Promise<string> => {
      throw new AppError({ code: 'HOST_TIMEOUT', message: 'sh did not exit within 5s' });
    };
    const gate: PreparedGate = { ...GATE, command: ['true'], retries: 100, timeout: '25s' };
    const given = ports({ runLocal });
    expect(await runGate(given, gate, BATCH)).toEqual({
      isPassed: false,
      answer: 'sh did not exit within 5s (time limit reached)',
      attempts: 3,
    });
  });

  it('keeps the end of a long output', async () => {
    const runLocal: GatePorts['runLocal'] = async (_, { onStderr }) => {
      onStderr(Array.from({ length: 1000 }, (__, i) => `line ${i}`).join('\n'));
      return '0';
    };
    const { output } = await runGate(ports({ runLocal }), { ...GATE, command: ['true'] }, BATCH);
    expect(output?.split('\n')).toHaveLength(20);
    expect(output).toMatch(/line 999$/);
  });
});

describe('a query of Prometheus as a gate', () => {
  let server: Server | null = null;
  afterEach(() => void server?.close());

  /** Gives an answer to a query that its server answers with a body. */
  const ask = async (body: unknown, range: { readonly min?: number; readonly max?: number } = { max: 1 }, status = 200) => {
    const asked: string[] = [];
    server = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { readonly port: number };
    const prometheus = { address: `http://127.0.0.1:${port}/prom/`, query: 'sum(rate(errors[5m])) > 0', thresholdRange: range };
    return { asked, ...(await runGate(ports(), { ...GATE, prometheus }, BATCH)) };
  };
  const vector = (...values: readonly string[]) => ({
    status: 'success',
    data: { resultType: 'vector', result: values.map((value) => ({ metric: {}, value: [1_700_000_000.1, value] })) },
  });

  it('passes if all values are in the range', async () => {
    const { asked, ...result } = await ask(vector('0.25'), { min: 0, max: 0.5 });
    expect(result).toEqual({ isPassed: true, answer: 'value 0.25', attempts: 1 });
    expect(asked).toEqual(['/prom/api/v1/query?query=sum%28rate%28errors%5B5m%5D%29%29+%3E+0']);
  });

  it.each([
    ['a value above the range', vector('0.5', '2'), 'values 0.5, 2'],
    ['no value', vector(), 'the result has no value'],
    ['NaN', vector('NaN'), 'value NaN'],
    ['infinity', vector('+Inf'), 'value +Inf'],
    ['a matrix', { status: 'success', data: { resultType: 'matrix', result: [] } }, 'the result is a matrix, not a vector or a scalar'],
    [
      'an error',
      { status: 'error', errorType: 'bad_data', error: 'parse error: unexpected end' },
      'Prometheus: parse error: unexpected end',
    ],
    ['another server', '<html>', 'the server answered with HTTP status 200, which is not an answer of Prometheus'],
  ])('fails with %s', async (_, body, answer) => {
    expect(await ask(body)).toMatchObject({ isPassed: false, answer });
  });

  it('reads a scalar, and fails without an answer', async () => {
    expect(await ask({ status: 'success', data: { resultType: 'scalar', result: [1, '0'] } }, { max: 0 })).toMatchObject({
      isPassed: true,
    });
    const prometheus = { address: 'http://127.0.0.1:1', query: 'up', thresholdRange: { min: 1 } };
    expect(await runGate(ports(), { ...GATE, prometheus }, BATCH)).toMatchObject({
      isPassed: false,
      answer: 'http://127.0.0.1:1 did not answer: connection refused',
    });
  });

  it('sends the token of a file only to a verified server', async () => {
    const requests: JsonObject[] = [];
    const web: GatePorts['web'] = {
      get: async ({ trust, bearerToken }) => {
        requests.push({ trust: { ...trust }, token: bearerToken?.reveal() ?? null });
        return { kind: 'failed', issue: { kind: 'refused' } };
      },
    };
    const input = { readText: async (path: string) => `content of ${path}\n` };
    const prometheus = { address: 'https://prom', query: 'up', thresholdRange: { min: 1 }, bearerTokenFile: '/token', caFile: '/ca' };
    await runGate(ports({ web, input }), { ...GATE, prometheus }, BATCH);
    expect(requests).toEqual([{ trust: { kind: 'ca', pem: 'content of /ca\n' }, token: 'content of /token' }]);
  });
});

describe('a Job as a gate', () => {
  const manifest = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { generateName: 'smoke-', labels: { team: 'edge' } },
    spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'busybox' }] } } },
  };
  const gate: PreparedGate = { ...GATE, job: { manifest, namespace: 'default' }, timeout: '2m' };
  const jobs = async (cluster: FakeCluster): Promise<readonly KubeObject[]> =>
    (await cluster.list({ apiVersion: 'batch/v1', kind: 'Job' })).items;

  /** Runs the gate, whose Job gets a condition after ten seconds. */
  const run = async (condition: JsonObject | null, more: Partial<GatePorts> = {}) => {
    const cluster = fakeCluster();
    const clock = fakeClock();
    let created: KubeObject | undefined;
    clock.at(10_000, () => {
      void jobs(cluster).then(async ([job]) => {
        created = job;
        if (job !== undefined && condition !== null)
          await cluster.patch(refOf(job), 'merge', { status: { conditions: [condition] } }, { subresource: 'status' });
      });
    });
    const result = await runGate(ports({ cluster, clock, ...more }), gate, BATCH);
    return { cluster, clock, created, result };
  };

  it('passes when it is complete, and is deleted', async () => {
    const { cluster, created, result } = await run({ type: 'Complete', status: 'True' });
    expect(result).toMatchObject({ isPassed: true, answer: 'Job default/smoke-test-01234567 completed' });
    expect(created).toMatchObject({
      metadata: { labels: { team: 'edge', 'kubeletadm.dev/gate': 'smoke-test' }, annotations: { 'kubeletadm.dev/batch': '2' } },
      spec: { activeDeadlineSeconds: 120, ttlSecondsAfterFinished: 86_400 },
    });
    expect(await jobs(cluster)).toEqual([]);
  });

  it('is kept for its logs when it failed', async () => {
    const { cluster, result } = await run({ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', message: 'it failed' });
    expect(result).toMatchObject({
      isPassed: false,
      answer:
        'Job default/smoke-test-01234567 failed: BackoffLimitExceeded: it failed; see kubectl logs -n default job/smoke-test-01234567',
    });
    expect(await jobs(cluster)).toHaveLength(1);
  });

  it('fails at its time limit', async () => {
    const { clock, result } = await run(null);
    expect(result).toMatchObject({ isPassed: false, answer: expect.stringContaining('did not complete in time') });
    expect(clock.elapsedMs).toBe(120_000);
  });

  it('is deleted when the run is interrupted', async () => {
    const cluster = fakeCluster();
    const clock = fakeClock();
    const abort = new AbortController();
    clock.at(10_000, () => abort.abort(interrupted('SIGINT')));
    await expect(runGate(ports({ cluster, clock, signal: abort.signal }), gate, BATCH)).rejects.toThrow('interrupted');
    expect(cluster.calls.filter((call) => /^(?:create|delete)/.test(call))).toHaveLength(2);
    expect(await jobs(cluster)).toEqual([]);
  });
});
