import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { parseHistory } from '../../src/fleet/history/host-history.ts';
import { HISTORY_PATH } from '../../src/host/commit/revert-script.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliOptions, type CliResult, runCommand } from '../support/run-cli.ts';

describe('undo', { timeout: 180_000 }, () => {
  let directory: string;
  let lab: Lab;
  let joined: CliResult;
  const path = (name: string): string => join(directory, name);
  const root = (host: number): string => lab.hosts[host - 1]?.rootDir ?? '';
  const read = (host: number, file: string): string => readFileSync(join(root(host), file), 'utf8');
  const entries = (host: number) => parseHistory(read(host, HISTORY_PATH));
  const last = (host: number) => entries(host).at(-1);
  const CONFIG = '/var/lib/kubelet/config.yaml';
  const SETTINGS = '/var/lib/kubelet/kubeletadm-node.yaml';
  const configOf = (host: number): string => read(host, CONFIG);
  const run = (argv: readonly string[], options: CliOptions = {}): Promise<CliResult> =>
    runCommand([...argv, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: path('state') }, ...options });
  const ofFleet = (...argv: readonly string[]): Promise<CliResult> => run([...argv, '-f', path('fleet.yaml')]);
  const done = async (result: Promise<CliResult>): Promise<CliResult> => {
    const { code, stderr, stdout } = await result;
    expect(code, stderr + stdout).toBe(0);
    return { code, stderr, stdout };
  };
  const apply = (maxPods: number, ...more: readonly string[]): Promise<CliResult> => {
    writeFileSync(
      path('fleet.yaml'),
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
baseline: {kubeletConfiguration: {maxPods: ${maxPods}}}
hosts: [{name: node1}, {name: node2}]
`,
    );
    return done(ofFleet('apply', '--yes', ...more));
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-undo-'));
    lab = await startLab({ directory: path('lab'), hosts: 2 });
    await startFirstNode(lab);
    joined = await run(['undo', 'node1', '--yes']);
    await apply(70);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  describe('of a change by apply', () => {
    let before: readonly string[];
    beforeEach(async () => {
      await apply(70);
      before = [configOf(1), configOf(2), read(1, SETTINGS)];
      await apply(60, '--reason', 'ticket 7');
    });

    it('shows the plan and what the next apply sets again, and changes nothing in a dry run', async () => {
      const { stdout, stderr } = await done(ofFleet('undo', 'node1', '--dry-run'));
      expect(stdout).toContain('maxPods: 60 → 70 (safe)');
      expect(stderr).toMatch(/node1 undoes apply of \S+ at 20\S+Z \([0-9a-f]{8}\), reason "ticket 7"/);
      expect(stdout + stderr).toContain('the fleet file set maxPods: the next kubeletadm apply sets it again');
      expect(configOf(1)).toContain('maxPods: 60\n');
      expect((await ofFleet('undo', 'node1', '--dry-run', '--exit-code')).code).toBe(6);
    });

    it('restores the files, and a second undo restores them again', async () => {
      const first = await done(ofFleet('undo', 'node1', 'node2', '--yes', '--reason', 'too few pods'));
      expect(first.stderr.match(/^node[12].* undoes apply of \S+ at 20\S+Z \([0-9a-f]{8}\), reason "ticket 7"$/gm)).toHaveLength(2);
      expect(first.stderr).not.toContain('UNDO_OF_UNDO');
      expect([configOf(1), configOf(2), read(1, SETTINGS)]).toEqual(before);
      expect(last(1)).toMatchObject({
        command: 'undo',
        reason: 'too few pods',
        result: 'changed',
        fields: [{ field: 'maxPods', before: 60, after: 70 }],
      });
      expect(last(1)?.run).toBe(last(2)?.run);
      const undone =
        /maxPods: wanted 60, on disk 70, running \d+; undone by \S+ at 20\S+Z \(\w{8}\): change the fleet file, or the next apply sets it again$/m;
      expect((await done(ofFleet('fleet', 'drift'))).stdout).toMatch(undone);
      expect((await done(ofFleet('status', 'node1'))).stdout).toMatch(/ 1 difference: undone /);
      const redo =
        /undoes the undo of \S+ at 20\S+Z \(\w{8}\), reason "too few pods": the host returns to the state before that undo\. .* --to .*\[UNDO_OF_UNDO\]/;
      const planned = await done(ofFleet('undo', 'node1', '--dry-run', '-o', 'json'));
      expect(planned.stdout).toMatch(/"code": ?"UNDO_OF_UNDO"/);
      const again = await done(ofFleet('undo', 'node1', '--yes'));
      expect(again.stderr).toMatch(redo);
      expect(configOf(1)).toContain('maxPods: 60\n');
    });

    it('asks, and applies exactly what was shown', async () => {
      const questions: string[] = [];
      const confirm = async (question: string): Promise<boolean> => questions.push(question) > 1;
      const ask = (): Promise<CliResult> =>
        run(['undo', '-f', path('fleet.yaml'), 'node1', 'node2'], { services: () => ({ canAsk: true, confirm }) });
      const declined = await ask();
      expect(declined).toMatchObject({ code: 1 });
      expect(declined.stderr).toMatch(/^undo was declined: nothing was changed$/m);
      expect(declined.stdout).toMatch(
        /^node1, node2 \(2 hosts\)\n[\s\S]*maxPods: 60 → 70[\s\S]*\n2 hosts: 2 pending \(1 field on 2 hosts\)/,
      );
      expect(configOf(1)).toContain('maxPods: 60\n');
      await done(ask());
      expect(questions).toEqual(['Apply these changes? [y/N] ', 'Apply these changes? [y/N] ']);
      expect([configOf(1), configOf(2)]).toEqual(before.slice(0, 2));
    });

    it('needs --yes without a terminal', async () => {
      const { code, stderr } = await ofFleet('undo', 'node1');
      expect(code).toBe(2);
      expect(stderr).toContain('undo asks before it changes anything, but standard input is not a terminal. Add --yes');
    });

    it('refuses a host that was changed since, with the field', async () => {
      writeFileSync(join(root(1), CONFIG), configOf(1).replace('maxPods: 60', 'maxPods: 77'));
      const { code, stderr } = await ofFleet('undo', 'node1', '--yes');
      expect(code).toBe(3);
      expect(stderr).toMatch(
        /node1: \/var\/lib\/kubelet\/config\.yaml was changed since apply of \S+ at 20\S+Z \(\w{8}\), not by kubeletadm at 20\S+Z: maxPods: 60 → 77\. .*\[UNDO_MOVED\]/,
      );
      expect(configOf(1)).toContain('maxPods: 77\n');
    });

    it('returns to the state after a run', async () => {
      const run70 = entries(2).findLast(({ fields }) => fields.some(({ after }) => after === 70))?.run ?? entries(2)[0]?.run ?? '';
      await apply(50);
      const { stderr } = await done(ofFleet('undo', 'node2', '--to', run70.slice(0, 8), '--yes'));
      expect(stderr.match(/undoes apply of \S+ at 20\S+Z \([0-9a-f]{8}\)/g)).toHaveLength(2);
      expect(configOf(2)).toBe(before[1]);
      expect(last(2)).toMatchObject({ command: 'undo', fields: [{ field: 'maxPods', before: 50, after: 70 }] });
      const current = last(2)?.run ?? '';
      const { stdout } = await done(ofFleet('undo', 'node2', '--to', current, '--yes'));
      expect(stdout).toBe('Nothing to do.\n');
      const unknown = await ofFleet('undo', 'node2', '--to', 'ffffffff', '--yes');
      expect(unknown.code).toBe(3);
      expect(unknown.stderr).toMatch(/no change with the id ffffffff\. The newest ids are .*\[UNDO_UNKNOWN_ID\]/);
    });

    it('does not go further back after a change that was rolled back', async () => {
      const lines = read(1, HISTORY_PATH).trimEnd().split('\n');
      const rolledBack = [...lines.slice(0, -1), (lines.at(-1) ?? '').replace('"result":"changed"', '"result":"rolled-back"')];
      writeFileSync(join(root(1), HISTORY_PATH), `${rolledBack.join('\n')}\n`);
      writeFileSync(join(root(1), CONFIG), before[0] ?? '');
      writeFileSync(join(root(1), SETTINGS), before[2] ?? '');
      const { code, stderr } = await ofFleet('undo', 'node1', '--yes');
      expect(code, stderr).toBe(3);
      expect(stderr).toMatch(
        /node1: nothing to undo: apply of \S+ at \S+ \(\w{8}\) was rolled back already\. .* add --to \w+\. \[UNDO_NOTHING\]/,
      );
      expect(configOf(1)).toBe(before[0]);
    });
  });

  it('does not undo joining', () => {
    expect(joined.code).toBe(3);
    expect(joined.stderr).toMatch(
      /^node1: join of \S+ at \S+ \(\w{8}\) is not undone: the host joined its cluster with it\. .*kubeletadm reset.*\[UNDO_NOT_POSSIBLE\]/,
    );
  });

  it('needs a host', async () => {
    expect(await ofFleet('undo', '--yes')).toMatchObject({ code: 2, stderr: expect.stringContaining('undo needs a host') });
    expect((await ofFleet('undo', 'node1', '--to', 'yesterday')).stderr).toContain('--to yesterday is not the id of a run');
  });

  it('keeps its records for root alone, and none with credentials', () => {
    const undo = join(root(2), dirname(HISTORY_PATH), 'undo');
    expect(statSync(undo).mode & 0o777).toBe(0o700);
    const records = readdirSync(undo);
    expect(records.length).toBeGreaterThan(1);
    for (const name of records) {
      expect(statSync(join(undo, name)).mode & 0o777).toBe(0o600);
      expect(readFileSync(join(undo, name), 'utf8')).not.toContain(lab.token.reveal());
    }
  });
});
