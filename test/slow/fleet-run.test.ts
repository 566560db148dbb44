import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { interrupted } from '../../src/base/errors.ts';
import { createServices } from '../../src/wiring.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const CONFIG = 'var/lib/kubelet/config.yaml';
const CLOSED_ADDRESS = '127.0.0.1';
const QUIET = { env: {}, stdin: Readable.from(['']), stdout: new Writable(), stderr: new Writable() };

describe('plan and apply of a fleet', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const hostFile = (host: number, name: string): string => join(lab.hosts[host - 1]?.rootDir ?? '', name);
  const config = (host: number): string => readFileSync(hostFile(host, CONFIG), 'utf8');
  const starts = (): readonly number[] => lab.hosts.map(({ kubeletStarts }) => kubeletStarts());
  const fleet = (more = ''): string => {
    const file = join(directory, 'fleet.yaml');
    writeFileSync(file, `${FLEET.replace('KUBECONFIG', lab.kubeconfig)}${more}`);
    return file;
  };
  const run = (...args: readonly string[]): Promise<CliResult> =>
    runCommand([...args, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: join(directory, 'state') } });
  const plan = (...args: readonly string[]): Promise<CliResult> => run('plan', '-f', join(directory, 'fleet.yaml'), ...args);
  const applyAsItIs = (...args: readonly string[]): Promise<CliResult> =>
    run('apply', '--yes', '-f', join(directory, 'fleet.yaml'), ...args);
  /** All hosts at once: a canary would double the duration. */
  const apply = (...args: readonly string[]): Promise<CliResult> => applyAsItIs('--canary', '0', ...args);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-fleet-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 4 });
    await startFirstNode(lab);
    fleet();
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('plan groups hosts with the same changes, and changes nothing', async () => {
    const { code, stdout, stderr } = await plan('--exit-code', '--diff');
    expect(code, stderr).toBe(6);
    expect(stdout).toContain('node3, node4 (2 hosts)\n');
    expect(stdout).toMatch(/^node2\n/m);
    expect(stdout.match(/\+maxPods: 60/g)).toHaveLength(1);
    expect(stdout).toContain('3 hosts: 3 pending (3 nodes join).\n');
    expect(starts()).toEqual([1, 0, 0, 0]);
  });

  it('passwords are read from standard input once, whichever command connects first', async () => {
    const passwords = ['--ssh-password-stdin', '--sudo-password-stdin'];
    const args = ['plan', '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig, '--limit', 'node3', ...passwords];
    const { code, stdout, stderr } = await runCommand(args, { stdin: 'one\ntwo\n' });
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('1 host: 1 pending (1 node joins).\n');
  });

  it('a warning for many hosts is printed once', async () => {
    const file = join(directory, 'shadowed.yaml');
    const flag = '  kubeletExtraArgs: [{name: max-pods, value: "70"}]\n  kubeletConfiguration: {maxPods: 80}';
    writeFileSync(
      file,
      `${FLEET.slice(0, FLEET.indexOf('groups:')).replace('KUBECONFIG', lab.kubeconfig)}baseline:\n${flag}\nhosts: [{name: "node[2:4]"}]\n`,
    );
    const { code, stderr } = await run('plan', '-f', file);
    expect(code, stderr).toBe(0);
    expect(stderr.split('\n').filter((line) => line.includes('max-pods'))).toEqual([
      expect.stringMatching(/^node\[2:4\] \(3 hosts\) warning: /),
    ]);
  });

  it('apply --limit joins the hosts of a group only', async () => {
    const { code, stdout, stderr } = await applyAsItIs('--group', 'edge');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('2 hosts: 2 changed.\n');
    expect(starts()).toEqual([1, 0, 1, 1]);
    for (const host of [3, 4]) expect(config(host)).toContain('maxPods: 60\n');
  });

  it('no bootstrap token remains', async () => {
    const { stdout } = await runCommand(['token', 'list', '--kubeconfig', lab.kubeconfig]);
    expect(stdout.trim().split('\n')).toHaveLength(2);
  });

  it('apply joins the remaining hosts, and a second run changes nothing', async () => {
    const { code, stdout, stderr } = await apply();
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('3 hosts: 1 changed, 2 unchanged.\n');
    expect(config(2)).toContain('maxPods: 44\n');
    const again = await plan('--exit-code');
    expect(again.code, again.stdout + again.stderr).toBe(0);
    expect(again.stdout).toBe('3 hosts: 3 unchanged.\n');
    expect(starts()).toEqual([1, 1, 1, 1]);
    const { stderr: reported } = await plan('-v', '2');
    // A command has several lines.
    const asked = reported.split(/\n(?=node\d )/).filter((line) => /^node2 (?:reads|lists|runs|GET)/.test(line));
    expect(asked.length).toBeGreaterThan(50);
    // One round trip: no fact is queried twice, and no kubelet is started to read its running configuration.
    expect(new Set(asked).size).toBe(asked.length);
    expect(reported).not.toContain('--config="$d/config.yaml"');
    fleet('baseline: {kubeletConfiguration: {podPidsLimit: 99}}\n');
    expect((await plan('-v', '2')).stderr).toContain('--config="$d/config.yaml"');
    fleet();
  });

  describe('unchanged hosts', () => {
    const sorted = (text: string): readonly string[] => {
      const [first, ...others] = text.trimEnd().split('\n');
      expect(first).toMatch(/^cluster: context "kubernetes-admin@kubernetes", https:/);
      expect(others.at(-1)).toMatch(/^took [0-9ms]+$/);
      return others.slice(0, -1).sort();
    };

    it('are reported in one line each', async () => {
      const { code, stdout, stderr } = await apply();
      expect([code, stdout]).toEqual([0, '3 hosts: 3 unchanged.\n']);
      expect(sorted(stderr)).toEqual(['node2 up to date', 'node3 up to date', 'node4 up to date']);
    });

    it('are also reported with several --host, and their phases are named with -v', async () => {
      const upgrade = (...args: readonly string[]): Promise<CliResult> => run('upgrade', 'node', '--kubeconfig', lab.kubeconfig, ...args);
      const [both, one, facts, dry] = await Promise.all([
        upgrade('--host', 'node2', '--host', 'node3'),
        upgrade('--host', 'node4'),
        upgrade('--host', 'node2', '--host', 'node3', '-v', '1'),
        upgrade('--host', 'node2', '--host', 'node3', '--dry-run'),
      ]);
      expect([both.code, both.stdout], both.stderr).toEqual([0, '2 hosts: 2 unchanged.\n']);
      expect(sorted(both.stderr)).toEqual(['node2 up to date', 'node3 up to date']);
      expect([one.code, one.stdout], one.stderr).toEqual([0, 'Nothing to do.\n']);
      expect(one.stderr).toContain('node4 [kubelet-config] the files are unchanged and the kubelet is healthy\n');
      expect(facts.stderr).toContain('node3 [kubelet-config] the files are unchanged and the kubelet is healthy\n');
      expect(dry.stdout).toBe('Nothing to do.\n');
    });
  });

  it('files edited by hand are corrected', async () => {
    const desired = config(3);
    writeFileSync(hostFile(3, CONFIG), desired.replace('maxPods: 60', 'maxPods: 6'));
    const shown = await plan('--exit-code', '--diff');
    expect(shown.code).toBe(6);
    expect(shown.stdout).toMatch(/^node3\n[\s\S]*-maxPods: 6\n[\s\S]*\+maxPods: 60\n/m);
    const fixed = await apply();
    expect(fixed.stdout).toBe('3 hosts: 1 changed, 2 unchanged.\n');
    expect(fixed.stderr.split('\n').filter((line) => line.startsWith('node3'))).toEqual([
      expect.stringMatching(/^node3 changed: config\.yaml maxPods 6 → 60, kubelet restarted, confirmed, Node is Ready \([0-9.]+s\)$/),
    ]);
    writeFileSync(hostFile(3, CONFIG), desired.replace('maxPods: 60', 'maxPods: 6'));
    const inDetail = await apply('-v', '1', '--limit', 'node3');
    for (const line of [`updated /${CONFIG}`, 'restarted kubelet', 'change confirmed over a new connection'])
      expect(inDetail.stderr).toContain(`node3 [kubelet-start] ${line}\n`);
    expect(config(3)).toBe(desired);
  });

  describe('a saved plan', () => {
    const saved = (): string => join(directory, 'plan.json');
    const save = async (): Promise<CliResult> => plan('--out', saved());
    const applySaved = (...args: readonly string[]): Promise<CliResult> => run('apply', saved(), '--canary', '0', ...args);
    const podPids = (limit: number): string => `baseline: {kubeletConfiguration: {podPidsLimit: ${limit}}}\n`;

    it('is the same for the same hosts except for its time, readable only for its owner, and contains no secret', async () => {
      fleet(podPids(500));
      const { stderr } = await save();
      const first = readFileSync(saved(), 'utf8');
      expect(stderr).toMatch(
        /^saved .*plan\.json: 3 hosts to change, plan ID sha256:[0-9a-f]{64}, valid until .*Z\. The file contains no secrets; apply uses a bootstrap token that is created at that time/,
      );
      expect(statSync(saved()).mode & 0o777).toBe(0o600);
      rmSync(saved());
      await save();
      const withoutTime = (text: string): object => ({ ...JSON.parse(text), validity: null });
      expect(withoutTime(readFileSync(saved(), 'utf8'))).toEqual(withoutTime(first));
      expect(withoutTime((await plan('-o', 'json')).stdout)).toEqual(withoutTime(first));
      for (const secret of [lab.token.reveal(), 'PRIVATE KEY', 'client-key-data']) expect(first).not.toContain(secret);
    });

    it('is applied without the fleet file, even if that changed since', async () => {
      fleet(podPids(501));
      const { code, stdout, stderr } = await applySaved();
      expect(code, stderr).toBe(0);
      expect(stdout).toBe('3 hosts: 3 changed.\n');
      for (const host of [2, 3, 4]) expect(config(host)).toContain('podPidsLimit: 500\n');
      fleet(podPids(500));
      expect((await plan()).stdout).toBe('3 hosts: 3 unchanged.\n');
    });

    it('changes nothing the second time', async () => {
      expect(await applySaved()).toMatchObject({ code: 0, stdout: '3 hosts: 3 unchanged.\n' });
    });

    it('is rejected on a host that changed since', async () => {
      fleet(podPids(600));
      await save();
      const edited = `${config(4)}# by hand\n`;
      writeFileSync(hostFile(4, CONFIG), edited);
      const { code, stdout, stderr } = await applySaved();
      expect(code).toBe(4);
      expect(stdout).toBe('3 hosts: 2 changed, 1 refused.\n');
      expect(stderr).toMatch(
        /node4: the host or the cluster changed since the plan was saved: kubelet-start write-file \/var\/lib\/kubelet\/config\.yaml\..*\[PLAN_STALE\]/,
      );
      expect(stderr).toContain('node4 difference between the saved plan and the current plan:\n');
      expect(stderr).toMatch(/^ *\+ +# by hand$|^ *\+ +-# by hand$/m);
      expect(config(4)).toBe(edited);
      // With the flag the new plan is shown and applied.
      const accepted = await applySaved('--replan');
      expect(accepted.code, accepted.stderr).toBe(0);
      expect(accepted.stderr).toMatch(
        /^node4 warning: the host or the cluster changed since the plan was saved, so this host was planned again: .*\[PLAN_CHANGED\]$/m,
      );
      expect(accepted.stderr).toMatch(/^ *\+ +-# by hand$/m);
      expect(config(4)).toContain('podPidsLimit: 600\n');
      expect(config(4)).not.toContain('# by hand');
      expect(await applyAsItIs('--replan')).toMatchObject({ code: 2, stderr: expect.stringContaining('--replan requires a saved plan') });
      expect((await apply()).code).toBe(0);
    });

    it('is rejected when it was edited or is not a plan', async () => {
      fleet(podPids(700));
      await save();
      writeFileSync(saved(), readFileSync(saved(), 'utf8').replaceAll('podPidsLimit: 700', 'podPidsLimit: 701'));
      expect(await applySaved()).toMatchObject({ code: 2, stderr: expect.stringContaining('the file was edited after saving') });
      writeFileSync(saved(), '{}');
      expect(await applySaved()).toMatchObject({ code: 2, stderr: expect.stringContaining('[PLAN_INVALID]') });
      expect(await applySaved('-f', 'fleet.yaml')).toMatchObject({ code: 2 });
      expect(config(2)).toContain('podPidsLimit: 600\n');
    });
  });

  it('an unreachable host delays no other, and is reported at the end', async () => {
    fleet(`  - {name: dead, address: ${CLOSED_ADDRESS}, ssh: {port: 1}}\nbaseline: {kubeletConfiguration: {podPidsLimit: 1000}}\n`);
    // The unreachable host counts for the limit: one host is changed at once.
    const { code, stdout, stderr } = await apply('--serial', '2');
    expect(code).toBe(4);
    expect(stdout).toBe('4 hosts: 3 changed, 1 unreachable.\n');
    expect(stderr.trim().split('\n').at(-1)).toMatch(/^dead: .* \[HOST_UNREACHABLE\]$/);
    for (const host of [2, 3, 4]) expect(config(host)).toContain('podPidsLimit: 1000\n');
  });

  describe('overview of the fleet', () => {
    const inspect = (command: string, ...args: readonly string[]): Promise<CliResult> =>
      runCommand(['fleet', command, '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig, ...args]);
    beforeAll(async () => {
      fleet();
      expect((await apply()).code).toBe(0);
    });

    it('status prints one line per host: version, configuration, health, Node, drift', async () => {
      fleet(`  - {name: dead, address: ${CLOSED_ADDRESS}, ssh: {port: 1}}\n  - {name: node1, role: control-plane}\n`);
      writeFileSync(hostFile(3, CONFIG), config(3).replace('maxPods: 60', 'maxPods: 6'));
      const { code, stdout, stderr } = await inspect('status');
      const hash = (host: number): string => createHash('sha256').update(config(host)).digest('hex').slice(0, 12);
      expect(
        stdout
          .trim()
          .split('\n')
          .map((line) => line.split(/ {2,}/)),
      ).toEqual([
        ['HOST', 'REACHABLE', 'KUBELET', 'CONFIG', 'SOURCE', 'HEALTH', 'STATUS', 'DRIFT'],
        [
          'node3',
          'yes',
          expect.stringMatching(/^v1\.\d+/),
          hash(3),
          'file',
          'ok',
          'Ready',
          expect.stringMatching(/^2 changes(?:, pending restart)?$/),
        ],
        ['node4', 'yes', expect.anything(), hash(4), 'file', 'ok', 'Ready', 'none'],
        ['node2', 'yes', expect.anything(), hash(2), 'file', 'ok', 'Ready', 'none'],
        ['dead', 'no', '-', '-', '-', '-', '-', '-'],
        ['node1', 'yes', expect.anything(), hash(1), 'file', 'ok', 'Ready', 'not joined as control plane'],
      ]);
      expect(stderr).toMatch(/^dead: .*\[HOST_UNREACHABLE\]$/m);
      expect(code).toBe(4);
      const document = JSON.parse((await inspect('status', '--limit', 'dead', '-o', 'json')).stdout) as { hosts: readonly object[] };
      const unknown = {
        kubelet: null,
        config: null,
        source: null,
        health: null,
        node: null,
        nodeName: null,
        drift: null,
        unconfirmed: null,
      };
      expect(document.hosts).toEqual([{ host: 'dead', address: CLOSED_ADDRESS, groups: [], reachable: false, ...unknown }]);
      fleet();
    });

    it('drift detects files edited by hand and drop-ins that a package overwrote', async () => {
      const dropIn = hostFile(4, 'etc/systemd/system/kubelet.service.d/10-kubeadm.conf');
      writeFileSync(dropIn, '[Service]\nExecStart=\nExecStart=/usr/bin/kubelet\n');
      const { code, stdout } = await inspect('drift', '--exit-code');
      expect(code).toBe(6);
      expect(stdout).toMatch(
        /^node3 +\/var\/lib\/kubelet\/config\.yaml +maxPods: wanted 60, on disk \d+(?:, running \d+)?; the host changed$/m,
      );
      expect(stdout).toMatch(/^node4 +\/etc\/systemd\/system\/kubelet\.service\.d\/10-kubeadm\.conf +its content differs$/m);
      const report = JSON.parse((await inspect('drift', '-o', 'json')).stdout) as { hosts: { name: string; status: string }[] };
      expect(report.hosts.map(({ name, status }) => `${name} ${status}`)).toEqual(['node3 drifted', 'node4 drifted', 'node2 unchanged']);
      expect((await apply()).stdout).toBe('3 hosts: 2 changed, 1 unchanged.\n');
      expect(await inspect('drift', '--exit-code')).toMatchObject({ code: 0, stdout: 'No drift.\n' });
    });

    it('exec runs a command on every host, and no output writes to the terminal', async () => {
      const { code, stdout, stderr } = await inspect('exec', '--limit', 'edge', '--', "printf 'a\\033[31mb\\n'; exit 3");
      expect(code).toBe(1);
      expect(stdout.split('\n').filter((line) => line.startsWith(' '))).toEqual(['  a\\x1b[31mb', '  a\\x1b[31mb']);
      expect(stderr).toContain('node3, node4 (2): the command exited with code 3 [COMMAND_FAILED]\n');
      const words = await inspect('exec', '--limit', 'node3', '-o', 'json', '--', 'printf', '%s-', 'a b', '$HOME');
      expect(JSON.parse(words.stdout)).toEqual({ host: 'node3', exitCode: 0, stdout: 'a b-$HOME-', stderr: '' });
    });
  });

  it('--retry failed processes the remaining hosts of an earlier run', async () => {
    fleet(`  - {name: dead, address: ${CLOSED_ADDRESS}, ssh: {port: 1}}\nbaseline: {kubeletConfiguration: {podPidsLimit: 1001}}\n`);
    expect((await apply('--limit', '!node2')).code).toBe(4);
    const retried = await apply('--retry', 'failed');
    expect(retried.code).toBe(1);
    expect(retried.stdout).toBe('1 host: 1 unreachable.\n');
    fleet('baseline: {kubeletConfiguration: {podPidsLimit: 1001}}\n');
    expect(await apply('--retry', 'failed')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^Nothing to do on the selected hosts\. Earlier runs left other hosts unfinished: dead \(last run: \S+Z\)\.\n$/,
      ),
    });
    expect((await apply()).stdout).toBe('3 hosts: 1 changed, 2 unchanged.\n');
    const runs = join(directory, 'state', 'kubeletadm', 'runs');
    const journals = readdirSync(runs).toSorted();
    const last = readFileSync(join(runs, journals.at(-1) ?? ''), 'utf8')
      .trim()
      .split('\n');
    const events = last.map((line) => JSON.parse(line) as { event: string; host?: string; status?: string });
    expect(events.map(({ event, host, status }) => [event, host, status].filter(Boolean).join(' ')).toSorted()).toEqual([
      'host-began node2',
      'host-ended node2 changed',
      'host-ended node3 unchanged',
      'host-ended node4 unchanged',
      'run-ended',
      'run-started',
    ]);
    expect(journals.every((name) => (statSync(join(runs, name)).mode & 0o777) === 0o600)).toBe(true);
  });

  it('apply resumes an interrupted run', async () => {
    fleet('baseline: {kubeletConfiguration: {podPidsLimit: 1002}}\n');
    const interruption = new AbortController();
    const journal = join(directory, 'state');
    const argv = ['apply', '--yes', '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig, '--serial', '1', '--canary', '0'];
    const before = starts();
    const running = runCommand(argv, { env: { XDG_STATE_HOME: journal }, signal: interruption.signal });
    await untilTrue(() => starts().some((count, i) => count > (before[i] ?? 0)));
    interruption.abort(interrupted('SIGINT'));
    const { code, stdout, stderr } = await running;
    expect(code, stderr).toBe(130);
    expect(stdout).toBe('3 hosts: 1 changed, 2 interrupted.\n');
    expect(stderr).toMatch(/finishing the changes in progress on node\d; interrupt again to exit immediately \[INTERRUPTED\]/);
    expect((await apply('--retry', 'failed')).stdout).toBe('2 hosts: 2 changed.\n');
    expect((await plan('--exit-code')).code).toBe(0);
  });

  it('-o jsonl prints one event per line, each with its host', async () => {
    fleet('baseline: {kubeletConfiguration: {podPidsLimit: 1003}}\n');
    const { code, stdout } = await apply('-o', 'json');
    expect(code).toBe(0);
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { code: string; host?: string; phase?: string; message: string; data?: object });
    expect(
      events
        .filter((event) => event.code === 'HOST_ENDED')
        .map(({ host, message }) => `${host} ${message}`)
        .toSorted(),
    ).toEqual(['node2 changed', 'node3 changed', 'node4 changed']);
    // All events, also those that the text output omits.
    const noops = events.filter(({ code, host }) => code === 'PHASE_NOOP' && host === 'node2').map(({ phase }) => phase);
    expect(noops).toContain('kubelet-wait-bootstrap');
    expect(events.at(-1)).toMatchObject({ code: 'RUN_ENDED', data: { changed: 3 } });
    expect(events.filter((event) => event.code === 'CHANGE_DONE').every(({ host }) => host !== undefined)).toBe(true);
  });

  it('apply stops when the canary rolls back', async () => {
    const before = [2, 3, 4].map(config);
    fleet('baseline: {kubeletConfiguration: {authentication: {x509: {clientCAFile: /nowhere/ca.crt}}}}\n');
    const refused = await applyAsItIs();
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('/nowhere/ca.crt does not exist on the host')]);
    const { code, stdout, stderr } = await applyAsItIs('--allow-pod-loss', '--allow', 'unsafe');
    expect(code).toBe(4);
    expect(stdout).toBe('3 hosts: 1 rolled back, 2 not started.\n');
    expect(stderr).toMatch(
      /node[234]: .*\[ROLLED_BACK\][\s\S]*the run stopped before it processed 2 hosts: the first host to be changed \(canary\) failed.*\[FLEET_STOPPED\]/,
    );
    expect([2, 3, 4].map(config)).toEqual(before);
  });

  describe('a change with confirmation', () => {
    const kept = (host: number): boolean => existsSync(hostFile(host, 'var/lib/kubeletadm'));
    const settle = (...args: readonly string[]): Promise<CliResult> =>
      runCommand(['fleet', ...args, '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig]);
    /** The state that a run leaves when it is killed before the confirmation. */
    const leaveUnconfirmed = async (host: number): Promise<void> => {
      const id = `00000000000000a${host}`;
      const services = createServices({ ...QUIET, signal: new AbortController().signal });
      const connection = await services.connectHost({ address: `node${host}`, ssh: { configFile: lab.sshConfig } });
      const path = `/${CONFIG}`;
      await connection.perform([
        { kind: 'arm-revert', revert: { id, timeoutSeconds: 600, owner: 'test', paths: [path], units: ['kubelet'], reload: false } },
        { kind: 'write-file', path, content: `${config(host)}# unconfirmed\n`, mode: 0o644, owner: 'root:root' },
      ]);
      await connection.close();
    };

    it.each([
      [['--confirm-timeout', '7m'], 3],
      [['--no-confirm'], 0],
    ])('is armed on each host according to %j', async (options, times) => {
      fleet(`baseline: {kubeletConfiguration: {podPidsLimit: ${2000 + times}}}\n`);
      const { code, stderr } = await apply(...options, '-v', '1');
      expect(code, stderr).toBe(0);
      expect(stderr.match(/rolls back automatically unless the change is confirmed within 420 s/g) ?? []).toHaveLength(times);
      expect([2, 3, 4].map(kept)).toEqual([false, false, false]);
    });

    it('is confirmed or reverted manually on all hosts of a group with a pending change', async () => {
      const before = [2, 3, 4].map(config);
      for (const host of [2, 4]) await leaveUnconfirmed(host);
      expect(await settle('confirm', '--group', 'edge')).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^node4: confirmed: the change made by test at .*Z\n$/),
      });
      expect(await settle('revert', '--limit', 'node*')).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^node2: rolled back: .*\n$/),
      });
      expect([2, 3, 4].map(config)).toEqual([before[0], before[1], `${before[2]}# unconfirmed\n`]);
      expect(await settle('confirm', '--group', 'edge')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Nothing to do: /) });
      expect(await settle('confirm', 'node3')).toMatchObject({ code: 0, stdout: 'node3: no pending change\n' });
      expect(await settle('revert', 'node3')).toMatchObject({ code: 0, stdout: 'node3: no pending change\n' });
      // A reverted change is never a success, though none is pending.
      expect(await settle('confirm', '--limit', 'node2')).toMatchObject({ code: 5, stderr: expect.stringContaining('[COMMIT_REVERTED]') });
      expect(await settle('confirm')).toMatchObject({ code: 2, stderr: expect.stringContaining('no host was given') });
      expect(await settle('revert', 'node3', '--group', 'edge')).toMatchObject({ code: 2 });
      rmSync(hostFile(2, 'var/lib/kubeletadm'), { recursive: true });
      writeFileSync(hostFile(4, CONFIG), before[2] ?? '');
    });
  });

  it.each([
    [['--limit', 'node9'], /--limit node9: no host, group or nodeName matches\. Did you mean node\d\?/],
    [['--group', 'egde'], /--group egde: no group with this name contains hosts\. Did you mean edge\?/],
    [['--serial', '0'], /--serial 0 must be a number of hosts \(1 or more\)/],
    [['--max-fail', 'few'], /--max-fail few must be a number of hosts \(0 or more\) or a percentage \(0% to 100%\)/],
    [['--limit', 'node2', '--limit', '!node2'], /no host matches --limit and --group/],
  ])('rejects %j', async (args, message) => {
    fleet();
    const { code, stderr } = await apply(...args);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });
});

const FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: KUBECONFIG}
groups:
  - name: edge
    kubeletConfiguration: {maxPods: 60}
    labels: {pool: edge}
  - name: core
    kubeletConfiguration: {maxPods: 40}
hosts:
  - {name: 'node[3:4]', groups: [edge]}
  - {name: node2, groups: [core], kubeletConfiguration: {maxPods: 44}, ssh: {transport: openssh}}
`;
