import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { bundle } from '../support/bundle.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const DEAD = [1, 2].map((number) => `  - {name: dead${number}, address: 127.0.0.${number}, ssh: {port: 1}}\n`);

describe('fleet drift, status and plan of hosts that do not answer', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let cluster: Cluster;
  const write = (hosts: string, ofNodes = ''): string => {
    const file = join(directory, 'fleet.yaml');
    writeFileSync(
      file,
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\nhosts:\n  - {name: "node[2:3]"${ofNodes}}\n${hosts}`,
    );
    return file;
  };
  const run = (...args: readonly string[]): Promise<CliResult> =>
    runCommand(args.includes('--ssh-config') ? args : [...args, '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: join(directory, 'state') },
    });
  const drift = async (file: string): Promise<string> => (await run('fleet', 'drift', '-f', file)).stdout;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-drift-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    cluster = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    await startFirstNode(lab);
    const applied = await run('apply', '--yes', '-f', write(''), '--canary', '0');
    expect(applied.code, applied.stderr).toBe(0);
  });
  afterAll(async () => {
    await cluster?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('names the hosts that answered and the ones that were not checked', async () => {
    const { code, stdout } = await run('fleet', 'drift', '-f', write(DEAD[0] ?? ''), '--exit-code');
    expect(stdout).toBe('No drift on the 2 hosts that answered; dead1 was not checked: connection refused\n');
    expect(code).toBe(4);
  });

  it('claims nothing when no host answered', async () => {
    const file = write(DEAD.join(''));
    const { code, stdout, stderr } = await run('fleet', 'drift', '-f', file, '--limit', 'dead*', '--exit-code');
    expect(stdout).toBe('dead1, dead2 were not checked: connection refused\n');
    expect(stderr.match(/^.*\[HOST_UNREACHABLE\]$/gm)).toEqual([expect.stringMatching(/^dead1, dead2 \(2\): cannot reach the host: /)]);
    expect(code).toBe(4);
    const status = await run('fleet', 'status', '-f', file, '--limit', 'dead*');
    expect(status.code).toBe(4);
    expect(status.stdout).not.toMatch(/none|ok/);
    const json = JSON.parse((await run('fleet', 'drift', '-f', file, '--limit', 'dead1', '-o', 'json')).stdout) as { hosts: object[] };
    expect(json.hosts).toEqual([
      { name: 'dead1', status: 'unreachable', drift: null, reason: expect.stringContaining('connection refused') },
    ]);
  });

  it('claims nothing when the ssh_config cannot be read', async () => {
    const { code, stdout } = await run('fleet', 'drift', '-f', write(''), '--ssh-config', '/nope');
    expect(stdout).not.toContain('No drift');
    expect(stdout).toMatch(/^node2, node3 were not checked: /);
    expect(code).toBe(4);
  });

  it('lists drift and the hosts that were not checked', async () => {
    const file = write(`${DEAD[0]}baseline: {kubeletConfiguration: {maxPods: 77}}\n`);
    const { code, stdout } = await run('fleet', 'drift', '-f', file, '--exit-code');
    expect(stdout).toMatch(/^node2, node3 +\/var\/lib\/kubelet\/config\.yaml /m);
    expect(stdout).toMatch(/\ndead1 was not checked: connection refused\n$/);
    expect(code).toBe(4);
  });

  it('prints drift and plans for continuous integration', async () => {
    const file = write(`${DEAD[0]}baseline: {kubeletConfiguration: {maxPods: 77}}\n`);
    const junit = await run('fleet', 'drift', '-f', file, '-o', 'junit');
    expect(junit.code).toBe(4);
    expect(junit.stdout).toContain('<testsuites name="kubeletadm fleet drift" tests="3" failures="2" errors="1">');
    expect(junit.stdout).toMatch(/name="node2">\n +<failure type="drift" message="\/var\/lib\/kubelet\/config\.yaml: maxPods: /);
    expect(junit.stdout).toMatch(/name="dead1">\n +<error message="connection refused">/);
    const github = await run('fleet', 'drift', '-f', file, '-o', 'github');
    expect(github.stdout).toContain(`::error file=${file},title=node3 drifted::/var/lib/kubelet/config.yaml: maxPods: `);
    expect(github.stdout).toContain(`::error file=${file},title=dead1 was not checked::connection refused\n`);
    const { code, stdout } = await run('plan', '-f', file, '-o', 'markdown');
    const [summary = '', ...lines] = stdout.split('\n');
    expect([code, summary]).toEqual([
      4,
      expect.stringMatching(/^\*\*kubeletadm plan:\*\* 3 hosts: 2 pending \(1 field on 2 hosts\), 1 unreachable/),
    ]);
    const folds = lines.indexOf('<details><summary>Contents and diffs</summary>');
    expect(lines.slice(0, folds).join('\n')).toMatch(
      /^\n```diff\n[\s\S]*node2, node3 \(2 hosts\)\n {2}~ maxPods: .*→ 77 [\s\S]*! dead1 unreachable: [\s\S]*```\n$/,
    );
    expect(lines.slice(folds).join('\n')).toMatch(/\+maxPods: 77\n[\s\S]*\n<\/details>\n$/);
  });

  it('names the hosts that a saved plan does not cover', async () => {
    const plan = join(directory, 'plan.json');
    expect((await run('plan', '-f', write(DEAD[0] ?? ''), '--out', plan)).code).toBe(4);
    const { code, stdout, stderr } = await run('apply', plan);
    expect(stdout).toBe('Nothing to do on the 2 hosts that were planned.\n');
    expect(stderr).toMatch(
      /dead1: the saved plan has no changes for this host, because planning failed .*connection refused.*\[HOST_NOT_PLANNED\]/,
    );
    expect(code).toBe(4);
  });

  it('does not claim that a retry has nothing left when the remaining hosts are not selected', async () => {
    const file = write(DEAD[0] ?? '');
    expect((await run('apply', '--yes', '-f', file, '--canary', '0')).code).toBe(4);
    const { code, stdout } = await run('apply', '--yes', '-f', file, '--retry', 'failed', '--limit', 'node2');
    expect(stdout).toMatch(
      /^Nothing to do on the selected hosts\. Earlier runs left other hosts unfinished: dead1 \(last run: \S+Z\)\.\n$/,
    );
    expect(code).toBe(0);
  });

  it('retries hosts later that --retry failed --limit excluded', async () => {
    const file = write(DEAD.join(''));
    await run('apply', '--yes', '-f', file, '--canary', '0');
    const limited = await run('apply', '--yes', '-f', file, '--retry', 'failed', '--limit', 'dead1');
    expect(limited.stdout).toBe('1 host: 1 unreachable.\n');
    const rest = await run('apply', '--yes', '-f', file, '--retry', 'failed');
    expect(rest.stdout).toBe('2 hosts: 2 unreachable.\n');
    expect((await run('apply', '--yes', '-f', write(DEAD[0] ?? ''), '--retry', 'failed')).stdout).toBe('1 host: 1 unreachable.\n');
  });

  describe('labels and taints', () => {
    const ROLE = 'node-role.kubernetes.io/worker';
    const marked = (labels: string, taints: string): string => write('', `, labels: {${labels}}, taints: [${taints}]`);
    const apply = async (file: string): Promise<void> => {
      const { code, stderr } = await run('apply', '--yes', '-f', file, '--canary', '0');
      expect(code, stderr).toBe(0);
    };
    const marksOf = async (name: string): Promise<{ labels: Readonly<Record<string, string>>; taints: readonly string[] }> => {
      const node = (await cluster.get({ apiVersion: 'v1', kind: 'Node', name })) as KubeObject;
      const { taints = [] } = node.spec as { taints?: { key: string; value?: string; effect: string }[] };
      return {
        labels: node.metadata.labels ?? {},
        taints: taints
          .filter(({ key }) => !key.startsWith('node.kubernetes.io/'))
          .map(({ key, value, effect }) => `${key}=${value ?? ''}:${effect}`),
      };
    };

    it('removes those that are no longer declared, and keeps those that others set', async () => {
      await apply(marked(`pool: edge, zone: a, ${ROLE}: ""`, '{key: pool, value: edge, effect: NoSchedule}'));
      expect(await drift(marked(`pool: edge, zone: a, ${ROLE}: ""`, '{key: pool, value: edge, effect: NoSchedule}'))).toBe('No drift.\n');
      // An administrator adds a label and a taint, and changes one declared label.
      const node = (await cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'node2' })) as KubeObject;
      const { taints } = node.spec as { taints: JsonObject[] };
      await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'node2' }, 'merge', {
        metadata: { labels: { team: 'x', zone: 'b' } },
        spec: { taints: [...taints, { key: 'broken', effect: 'NoExecute' }] },
      });
      const file = marked('', '');
      const shown = await drift(file);
      expect(shown).toMatch(
        /^node3 +Node node3 .*label node-role.kubernetes.io\/worker=, label pool=edge, label zone=a, taint pool=edge:NoSchedule/m,
      );
      expect(shown).toMatch(/^node2 +Node node2 .*no longer declared/m);
      expect((await run('plan', '-f', file)).stdout).toMatch(/~ Node node[23]: .*no longer declared: label node-role/);
      await apply(file);
      const node2 = await marksOf('node2');
      expect(node2.labels).toMatchObject({ team: 'x', zone: 'b' });
      expect(Object.keys(node2.labels)).not.toEqual(expect.arrayContaining(['pool']));
      expect(node2.labels[ROLE]).toBeUndefined();
      expect(node2.taints).toEqual(['broken=:NoExecute']);
      const node3 = await marksOf('node3');
      expect([node3.labels.pool, node3.labels.zone, node3.labels[ROLE], node3.taints]).toEqual([undefined, undefined, undefined, []]);
      expect(await drift(file)).toBe('No drift.\n');
    });

    it('keeps a quarantine taint, regardless of the annotations and files of the node', async () => {
      const declared = marked('pool: edge', '');
      await apply(declared);
      const ref = { apiVersion: 'v1', kind: 'Node', name: 'node3' };
      const forged = { labels: { team: 'x' }, taints: [{ key: 'quarantine', value: 'yes', effect: 'NoExecute' }] };
      const { spec } = (await cluster.get(ref)) as KubeObject;
      const { taints = [] } = spec as { taints?: JsonObject[] };
      await cluster.patch(ref, 'merge', {
        metadata: { labels: { team: 'x' }, annotations: { 'kubeletadm.dev/last-applied-marks': JSON.stringify(forged) } },
        spec: { taints: [...taints, ...forged.taints] },
      });
      const memory = join(lab.hosts[2]?.rootDir ?? '', 'var/lib/kubelet/kubeletadm-node.yaml');
      const text = readFileSync(memory, 'utf8');
      expect(text).toContain('name: node-labels');
      const lie = `  taints:\n    - key: quarantine\n      value: "yes"\n      effect: NoExecute\n`;
      writeFileSync(memory, text.replace('pool=edge', 'pool=edge,team=x').replace('nodeRegistration:\n', `nodeRegistration:\n${lie}`));
      const file = marked('', '');
      const { stdout, stderr } = await run('plan', '-f', file);
      expect(stdout).not.toMatch(/no longer declared: .*(?:quarantine|team)/);
      expect(`${stdout}${stderr}`).toMatch(/NODE_MARKS_NOT_REMOVED|still has labels or taints that are no longer declared/);
      await apply(file);
      const found = await marksOf('node3');
      expect([found.labels.team, found.labels.pool, found.taints]).toEqual(['x', undefined, ['quarantine=yes:NoExecute']]);
      await cluster.patch(ref, 'merge', { metadata: { labels: { team: null } }, spec: { taints } });
    });

    it('replaces a taint whose effect changed', async () => {
      await apply(marked('', '{key: pool, value: edge, effect: NoSchedule}'));
      await apply(marked('', '{key: pool, value: edge, effect: PreferNoSchedule}'));
      expect((await marksOf('node3')).taints).toEqual(['pool=edge:PreferNoSchedule']);
      expect((await marksOf('node2')).taints).toEqual(['broken=:NoExecute', 'pool=edge:PreferNoSchedule']);
      expect(await drift(marked('', '{key: pool, value: edge, effect: PreferNoSchedule}'))).toBe('No drift.\n');
    });
  });

  describe('a saved plan with control planes', () => {
    const PLANES = ['node1', 'node2'];
    const setControlPlane = async (isPlane: boolean): Promise<void> => {
      const labels = { 'node-role.kubernetes.io/control-plane': isPlane ? '' : null };
      for (const name of PLANES) {
        const manifest = join(lab.hosts.find((host) => host.name === name)?.rootDir ?? '', 'etc/kubernetes/manifests/kube-apiserver.yaml');
        if (!isPlane) rmSync(manifest);
        else {
          mkdirSync(dirname(manifest), { recursive: true });
          writeFileSync(manifest, 'apiVersion: v1\nkind: Pod\nmetadata: {name: kube-apiserver}\nspec: {containers: []}\n');
        }
        await cluster.patch({ apiVersion: 'v1', kind: 'Node', name }, 'merge', { metadata: { labels } });
      }
    };

    it('changes them one after the other, after the workers', async () => {
      await setControlPlane(true);
      const file = join(directory, 'planes.yaml');
      const saved = join(directory, 'planes.json');
      const hosts = ['  - {name: node3}', ...PLANES.map((name) => `  - {name: ${name}, role: control-plane}`)];
      const head = `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\n`;
      writeFileSync(file, `${head}baseline: {kubeletConfiguration: {maxPods: 66}}\nhosts:\n${hosts.join('\n')}\n`);
      const planned = await run('plan', '-f', file, '--out', saved, '--ignore-preflight-errors', 'all');
      expect(planned.stdout.trimEnd().split('\n').at(-1), planned.stderr).toMatch(
        /^3 hosts: 3 pending .*; highest impact: new-pods-only\.$/m,
      );
      const { code, stdout, stderr } = await run('apply', saved, '--canary', '0', '--serial', '3', '-o', 'json');
      expect(code, stderr).toBe(0);
      const events = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { code: string; host?: string })
        .filter((event) => event.host !== undefined && (event.code === 'CHANGE_DONE' || event.code === 'HOST_ENDED'))
        .map((event) => event.host ?? '');
      // Each host once: the changes of a host and its result appear together, and those of the worker first.
      const turns = events.filter((host, i) => host !== events[i - 1]);
      expect([turns[0], turns.slice(1).toSorted()]).toEqual(['node3', PLANES]);
      await setControlPlane(false);
    });
  });

  describe('after a second Ctrl-C of apply', () => {
    const BIN = fileURLToPath(new URL('../../src/bin.ts', import.meta.url));
    let program = '';
    beforeAll(async () => {
      program = await bundle(BIN, directory);
    });
    const fileOf = (host: number, name: string): string => join(lab.hosts[host - 1]?.rootDir ?? '', name);
    const env = (): NodeJS.ProcessEnv => ({ ...process.env, XDG_STATE_HOME: join(directory, 'state') });

    const children = new Set<ChildProcess>();
    afterEach(() => {
      for (const child of children) child.kill('SIGKILL');
      children.clear();
    });

    /**
     * Ends a command with two interruptions, the first when a change of node2 or node3 waits for its
     * confirmation.
     */
    const interruptTwice = async (
      argv: readonly string[],
    ): Promise<{ code: number; lines: readonly string[]; open: readonly string[] }> => {
      const hosts = [2, 3];
      const record = (host: number): string => fileOf(host, 'var/lib/kubeletadm/commit/record');
      const isOpen = (): boolean => hosts.map(record).some(existsSync);
      // A host finishes its program after its run was ended, and may arm its revert only then.
      let reverted = '';
      const revert = async (): Promise<void> => {
        const { code, stdout, stderr } = await run('fleet', 'revert', '-f', join(directory, 'fleet.yaml'), '--limit', 'node*');
        reverted = `${code} ${stdout}${stderr}`;
      };
      const isIdle = async (): Promise<boolean> => {
        if (isOpen()) await revert();
        return !isOpen();
      };
      await untilTrue(isIdle, 30_000).catch(() => expect.fail(reverted));
      const child = spawn(process.execPath, [program, ...argv], { stdio: ['ignore', 'pipe', 'pipe'], env: env() });
      children.add(child);
      let stderr = '';
      child.stderr.on('data', (chunk: Buffer) => {
        stderr += chunk.toString();
      });
      const exit = once(child, 'close');
      const until = async (condition: () => boolean): Promise<void> => {
        await untilTrue(() => condition() || child.exitCode !== null, 60_000);
        expect(child.exitCode, stderr).toBeNull();
      };
      await until(isOpen);
      child.kill('SIGINT');
      await until(() => stderr.includes('[INTERRUPTED]'));
      child.kill('SIGINT');
      const [code] = (await exit) as [number];
      const lines = stderr
        .slice(Math.max(0, stderr.indexOf('Interrupted again')))
        .trimEnd()
        .split('\n');
      return { code, lines, open: hosts.filter((host) => existsSync(record(host))).map((host) => `node${host}`) };
    };

    it.each([
      [
        'join',
        (): readonly string[] => [
          'join',
          lab.server.replace('https://', ''),
          '--ca-cert',
          lab.caFile,
          '--token',
          lab.token.reveal(),
          '--set',
          'maxPods=77',
        ],
      ],
      ['upgrade node', (): readonly string[] => ['upgrade', 'node', '--kubeconfig', lab.kubeconfig, '--set', 'maxPods=78']],
    ])('reports each host of %s with several hosts', async (_, argv) => {
      const hosts = ['--host', 'node2', '--host', 'node3', '--ssh-config', lab.sshConfig, '--confirm-timeout', '7m'];
      const { code, lines } = await interruptTwice([...argv(), ...hosts]);
      expect(code).toBe(130);
      expect(lines[0]).toBe('Interrupted again: the run stopped immediately.');
      expect(lines.at(-1)).toBe('To continue, rerun the same command.');
      const text = lines.join('\n');
      for (const host of ['node2', 'node3']) expect(text).toContain(host);
      expect(text).toMatch(/^ {2}(?:not confirmed|in progress, .*): .*node[23]/m);
    });

    it('reports each host and how to resume; status shows the unconfirmed change', async () => {
      const file = write(`${DEAD[0]}baseline: {kubeletConfiguration: {maxPods: 88}}\n`);
      const argv = [
        'apply',
        '--yes',
        '-f',
        file,
        '--ssh-config',
        lab.sshConfig,
        '--serial',
        '2',
        '--canary',
        '0',
        '--confirm-timeout',
        '7m',
      ];
      const { code, lines, open } = await interruptTwice(argv);
      expect(code).toBe(130);
      const [first, second] = open.includes('node2') ? ['node2', 'node3'] : ['node3', 'node2'];
      expect(lines).toEqual([
        'Interrupted again: the run stopped immediately.',
        expect.stringMatching(
          `^  not confirmed: ${first} \\(rolls back automatically at about \\d{4}-\\d\\d-\\d\\dT[0-9:]{8}Z unless confirmed\\)$`,
        ),
        expect.stringMatching(/^ {2}unreachable: dead1 \(connection refused\)$/),
        `  not started: ${second}`,
        `To continue: kubeletadm ${argv.join(' ')} --retry failed`,
      ]);
      const status = await run('fleet', 'status', '-f', file);
      expect(status.stdout).toMatch(new RegExp(`^${first} .* unconfirmed change, rolls back at \\d{4}-\\d\\d-\\d\\dT[0-9:]{8}Z`, 'm'));
      const json = JSON.parse((await run('fleet', 'status', '-f', file, '--limit', 'node*', '-o', 'json')).stdout) as {
        hosts: { host: string; unconfirmed: object | null }[];
      };
      expect(json.hosts.find(({ host }) => host === first)?.unconfirmed).toEqual({
        owner: expect.stringContaining('@'),
        revertsAt: expect.stringMatching(/Z$/),
      });
      expect(json.hosts.find(({ host }) => host === second)?.unconfirmed).toBeNull();
      const again = await run('apply', '--yes', '-f', file, '--retry', 'failed', '--canary', '0');
      expect(again.stdout, again.stderr).toBe('3 hosts: 2 changed, 1 unreachable.\n');
      expect(await drift(file)).toMatch(/^No drift on the 2 hosts/);
    });
  });
});
