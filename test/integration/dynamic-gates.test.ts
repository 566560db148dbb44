import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { interrupted } from '../../src/base/errors.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { runCommand } from '../support/run-cli.ts';
import { type AgentFleet, agentFleet } from '../support/stand-in-agents.ts';
import { TOKEN_KUBECONFIG } from '../support/token-kubeconfig.ts';

const NODES = ['n1', 'n2', 'n3', 'n4'];
const HEADER = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Rollout\n';

describe('gates between the batches of dynamic assign', () => {
  let directory: string;
  let fleet: AgentFleet;
  /** Runs the commands of gates instead of processes. */
  let runLocal: (() => Promise<string>) | null;
  let abort: AbortController;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'dynamic-gates-'));
    writeFileSync(join(directory, 'admin.conf'), TOKEN_KUBECONFIG);
    fleet = await agentFleet(NODES);
    runLocal = null;
    abort = new AbortController();
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const assign = (maxPods: number, gates: string, ...options: readonly string[]) =>
    runCommand(
      [
        ...['dynamic', 'assign', ...NODES, '--file'],
        file('kubelet.yaml', `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: ${maxPods}\n`),
        ...['--min-ready', '0s', '--max-unavailable', '2', '--kubeconfig', join(directory, 'admin.conf')],
        ...['--gates', file('gates.yaml', `${HEADER}${gates}`), ...options],
      ],
      {
        signal: abort.signal,
        services: () => ({
          clock: fleet.clock,
          connectCluster: async () => ({ ...fleet.cluster, close: async () => {} }),
          ...(runLocal === null ? {} : { runLocal }),
        }),
      },
    );
  const sources = async (): Promise<Readonly<Record<string, string | undefined>>> =>
    Object.fromEntries(
      (await fleet.cluster.list({ apiVersion: 'v1', kind: 'Node' })).items.map(({ metadata }) => [
        metadata.name,
        metadata.annotations?.[CONFIG_SOURCE_ANNOTATION],
      ]),
    );
  const assigned = async (): Promise<readonly string[]> =>
    Object.entries(await sources()).flatMap(([node, source]) => (source ? [node] : []));

  it('run after each batch with the nodes of the batch', async () => {
    const log = join(directory, 'log');
    const { code, stdout, stderr } = await assign(
      70,
      `gates: [{name: log, command: 'echo "$KUBELETADM_BATCH $KUBELETADM_CANARY $KUBELETADM_LAST: $KUBELETADM_HOSTS" >> log'}]\n`,
    );
    expect(stderr).toContain('between batches: gate log (command) after each batch\n');
    expect(code).toBe(0);
    expect(readFileSync(log, 'utf8')).toBe('1 true false: n1\n2 false false: n2 n3\n3 false true: n4\n');
    expect(stdout).toContain('4 nodes: 4 changed.\nGates: 3 passed.\n');
  });

  it('that fail stop the rollout; the next run repeats them before its first batch', async () => {
    const gates = "gates: [{name: smoke-test, command: 'echo no route to shop; test -e ok'}]\n";
    const first = await assign(71, gates);
    expect(first.code).toBe(4);
    expect(first.stderr).toMatch(
      /gate smoke-test failed after batch 1: exit code 1: no route to shop; 3 nodes were not changed\. .* \[GATE_FAILED\]\n/,
    );
    expect(first.stdout).toContain('Gates: 1 failed (smoke-test after batch 1).\n');
    expect(await assigned()).toEqual(['n1']);
    const second = await assign(71, gates);
    expect([second.code, await assigned()]).toEqual([3, ['n1']]);
    expect(second.stderr).toContain('gate smoke-test failed before batch 1');
    file('ok', '');
    expect((await assign(71, gates)).code).toBe(0);
    expect(await assigned()).toEqual(NODES);
  });

  it('run again in a run without changes, until they pass', async () => {
    const gates = "gates: [{name: smoke-test, after: end, command: 'test -e ok'}]\n";
    expect((await assign(76, gates)).code).toBe(4);
    expect(await assigned()).toEqual(NODES);
    const again = await assign(76, gates);
    expect([again.code, again.stdout]).toEqual([3, '4 nodes: 4 unchanged.\nGates: 1 failed (smoke-test before any batch).\n']);
    expect(again.stderr).toMatch(/gate smoke-test failed in a run without changes: exit code 1\. .* \[GATE_FAILED\]\n/);
    file('ok', '');
    const passed = await assign(76, gates);
    expect([passed.code, passed.stdout]).toEqual([0, '4 nodes: 4 unchanged.\nGates: 1 passed.\n']);
  });

  it('run again after an interruption in the last gate', async () => {
    const gates = "gates: [{name: smoke-test, after: end, command: 'test -e ok'}]\n";
    runLocal = async () => {
      abort.abort(interrupted('SIGINT'));
      throw abort.signal.reason;
    };
    expect((await assign(77, gates)).code).toBe(130);
    [runLocal, abort] = [null, new AbortController()];
    expect(await assigned()).toEqual(NODES);
    expect((await assign(77, gates)).code).toBe(3);
  });

  it('do not change a node that others assigned during a gate', async () => {
    expect((await assign(60, 'gates: []\n')).code).toBe(0);
    const before = await sources();
    expect((await assign(61, 'gates: []\n')).code).toBe(0);
    const others = { metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: before.n2 ?? '' } } };
    runLocal = async () => {
      await fleet.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n2' }, 'merge', others);
      await fleet.clock.sleep(5_000);
      return '0\n';
    };
    const { code, stdout } = await assign(62, 'gates: [{name: others, after: canary, command: ["true"]}]\n', '--max-fail', '3');
    expect(code).toBe(4);
    expect(stdout).toContain('1 replaced');
    expect((await sources()).n2).toBe(before.n2);
  });

  it('restore the previous assignments where the gate says so', async () => {
    expect((await assign(60, 'gates: []\n')).code).toBe(0);
    const before = await sources();
    const { code, stderr } = await assign(72, 'gates: [{name: smoke-test, after: end, onFailure: revert, command: ["false"]}]\n');
    expect(stderr).toContain('restoring the previous assignments of the nodes');
    expect(code).toBe(5);
    expect(await sources()).toEqual(before);
  });

  it.each([
    ['after the canary', 'after: canary', 5],
    ['after the last batch', 'after: end', 5],
    ['after the last batch with onFailure: stop', 'after: end, onFailure: stop', 4],
  ])('that fail %s restore the previous assignments with --on-failure revert: %s', async (_, gate, expected) => {
    expect((await assign(60, 'gates: []\n')).code).toBe(0);
    const before = await sources();
    const gates = `gates: [{name: smoke-test, ${gate}, command: ["false"]}]\n`;
    const { code, stderr } = await assign(78, gates, '--on-failure', 'revert');
    expect(stderr).toContain('gate smoke-test failed after batch');
    expect(code).toBe(expected);
    const after = await sources();
    expect(NODES.filter((node) => after[node] === before[node])).toEqual(expected === 5 ? NODES : []);
  });

  it('that were interrupted restore the assignments before the first run, if they fail in the second one', async () => {
    expect((await assign(60, 'gates: []\n')).code).toBe(0);
    const before = await sources();
    const gates = 'gates: [{name: smoke-test, after: end, command: ["false"]}]\n';
    runLocal = async () => {
      abort.abort(interrupted('SIGINT'));
      throw abort.signal.reason;
    };
    expect((await assign(79, gates, '--on-failure', 'revert')).code).toBe(130);
    [runLocal, abort] = [null, new AbortController()];
    expect(await sources()).not.toEqual(before);
    expect((await assign(79, gates, '--on-failure', 'revert')).code).toBe(5);
    expect(await sources()).toEqual(before);
  });

  it('do not revert with --on-failure revert when a maintenance window closes', async () => {
    const windows = 'windows: [{startTime: "00:00", endTime: "00:01", timeZone: Etc/UTC}]\nbatchDuration: 50s\n';
    const { code, stderr } = await assign(80, windows, '--on-failure', 'revert', '--min-ready', '15s');
    expect(stderr).toContain('batch 2 may not finish before the maintenance window closes');
    expect([code, await assigned()]).toEqual([4, ['n1']]);
  });

  it('have no inline secrets', async () => {
    const job = (variable: string): string => {
      file(
        'job.yaml',
        `apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: busybox, env: [{name: DB_PASSWORD, ${variable}}]}]
`,
      );
      return 'gates: [{name: one, job: {manifest: job.yaml}}]\n';
    };
    const check = async (gates: string): Promise<string> => {
      const { code, stderr } = await assign(73, gates, '--dry-run');
      expect(stderr).not.toContain('hunter2');
      return `${code} ${stderr}`;
    };
    expect(await check('gates: [{name: one, command: "curl -u me:hunter2 https://example.com"}]\n')).toMatch(
      /^2 \S+gates\.yaml:3:\d+ gates\[0\]\.command: a text that looks like a secret is not allowed/,
    );
    expect(await check(job('value: hunter2'))).toMatch(
      /^2 \S+gates\.yaml:3:\d+ gates\[0\]\.job\.manifest: job\.yaml has a text that looks like a secret/,
    );
    expect(await check(job('valueFrom: {secretKeyRef: {name: db, key: password}}'))).toMatch(/^0 /);
  });

  it('are validated in a dry run, and do not run', async () => {
    const { code, stderr } = await assign(73, "gates: [{name: log, command: 'echo ran > log'}]\n", '--dry-run');
    expect(code).toBe(0);
    expect(stderr).toContain('between batches: gate log (command) after each batch\n');
    expect(existsSync(join(directory, 'log'))).toBe(false);
  });

  it.each([
    [
      'fields',
      `gates:
- {name: Two, after: never, timeout: 0s, retries: -1, command: [A=b], prometheus: {address: 'ftp://p', query: up, thresholdRange: {}}}
windows:
- {days: [Funday], startTime: "25:00", timeZone: Mars/Olympus}
`,
    ],
    [
      'gates and files',
      `gates:
- {name: one, command: [./missing.sh], job: {manifest: pod.yaml}}
- {name: one, prometheus: {address: 'http://p', query: up, thresholdRange: {}, bearerTokenFile: token}}
- {name: two}
windows:
- {startTime: "23:00", timeZone: Etc/UTC}
`,
    ],
  ])('are refused with all problems of their %s, before anything is changed', async (_, gates) => {
    file('pod.yaml', 'apiVersion: v1\nkind: Pod\n');
    const { code, stderr } = await assign(74, gates);
    expect(code).toBe(2);
    expect(stderr.replaceAll(`${directory}/`, '')).toMatchSnapshot();
    expect(await assigned()).toEqual([]);
  });

  it('do not start a batch outside of the maintenance windows, unless these are ignored', async () => {
    const day = new Date(fleet.clock.now().getTime() + 2 * 86_400_000).toUTCString().slice(0, 3);
    const windows = `windows: [{days: [${day}], startTime: "10:00", endTime: "12:00", timeZone: Etc/UTC}]\n`;
    const { code, stderr } = await assign(75, windows);
    expect(code).toBe(3);
    expect(stderr).toMatch(/no maintenance window is open; the next window opens on \w+ [-0-9]+ 10:00 Etc\/UTC; 4 nodes were not changed/);
    expect(await assigned()).toEqual([]);
    const ignored = await assign(75, windows, '--ignore-window');
    expect(ignored.code).toBe(0);
    expect(ignored.stderr).toContain('(--ignore-window) [WINDOW_IGNORED]');
  });
});
