import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { AppError } from '../../src/base/errors.ts';
import { type HistoryEntry, parseHistory } from '../../src/fleet/history/host-history.ts';
import type { Host } from '../../src/host/access/host.ts';
import { COMMIT_DIRECTORY, HISTORY_PATH } from '../../src/host/commit/revert-script.ts';
import type { Operation } from '../../src/host/operation/operation.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { generateKey } from '../support/sshd.ts';

describe('the history of a host', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const path = (name: string): string => join(directory, name);
  const journal = (host: number): string => join(lab.hosts[host - 1]?.rootDir ?? '', HISTORY_PATH);
  const entries = (host: number) => parseHistory(readFileSync(journal(host), 'utf8'));
  const fleet = (maxPods: number): void =>
    writeFileSync(
      path('fleet.yaml'),
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
baseline: {kubeletConfiguration: {maxPods: ${maxPods}}}
hosts: [{name: node1}, {name: node2}]
`,
    );
  const run = (...args: readonly string[]): Promise<CliResult> =>
    runCommand([...args, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: path('state') } });
  const ofFleet = (...args: readonly string[]): Promise<CliResult> => run(...args, '-f', path('fleet.yaml'));
  const events = async (): Promise<readonly string[]> => {
    const { stdout } = await run('fleet', 'history', '-f', path('fleet.yaml'));
    return stdout.split('\n');
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-history-'));
    lab = await startLab({ directory: path('lab'), hosts: 2 });
    await startFirstNode(lab, '--reason', 'first node');
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is empty before the first change', async () => {
    expect(existsSync(journal(2))).toBe(false);
    fleet(110);
    expect((await ofFleet('fleet', 'history', '--limit', 'node2')).stdout).toBe('No changes are recorded.\n');
  });

  it('records operator, time and reason of a change by a signed plan', async () => {
    fleet(60);
    generateKey(path('key'), 'ed25519');
    writeFileSync(path('signers'), `alice@example.com ${readFileSync(path('key.pub'), 'utf8')}`);
    const planned = await ofFleet('plan', '--out', path('plan.json'), '--sign', path('key'), '--valid-for', '1h');
    expect(planned.stderr).toContain(`signed with ${path('key')}: ${path('plan.json.sig')}\n`);
    const shown = await run('plan', 'show', path('plan.json'));
    expect(shown.stdout).toContain('  ~ maxPods: ');
    expect(shown.stdout).toMatch(/^2 hosts: 2 pending.*; highest impact: new-pods-only\.$/m);
    const applied = await run('apply', path('plan.json'), '--require-signature', path('signers'), '--reason', 'ticket 7');
    expect(applied.code, applied.stderr).toBe(0);
    const plan = JSON.parse(readFileSync(path('plan.json'), 'utf8'));
    const common = { command: 'apply', reason: 'ticket 7', plan: plan.id, result: 'changed', signer: { principal: 'alice@example.com' } };
    expect(entries(1).map(({ command, reason }) => [command, reason])).toEqual([
      ['join', 'first node'],
      ['apply', 'ticket 7'],
    ]);
    expect(entries(1)[1]).toMatchObject({
      ...common,
      login: expect.any(String),
      operator: expect.stringContaining(`${userInfo().username}@`),
      fields: [{ field: 'maxPods', before: 110, after: 60 }],
      changes: expect.arrayContaining(['kubelet-start write-file /var/lib/kubelet/config.yaml', 'kubelet-start restart-unit kubelet']),
    });
    expect(entries(2)).toMatchObject([common]);
    expect(statSync(journal(2)).mode & 0o777).toBe(0o600);
    expect(readFileSync(journal(2), 'utf8')).not.toContain(lab.token.reveal());
  });

  it('is no change of the plan, and a host without changes has no new entry', async () => {
    const before = readFileSync(journal(1), 'utf8');
    const again = await run('apply', path('plan.json'));
    expect(again).toMatchObject({ code: 0, stdout: '2 hosts: 2 unchanged.\n' });
    expect((await ofFleet('plan')).stdout).toBe('2 hosts: 2 unchanged.\n');
    expect(readFileSync(journal(1), 'utf8')).toBe(before);
  });

  describe('of a saved plan that is applied a second time', () => {
    let kept: readonly string[];
    const planned = () => JSON.parse(readFileSync(path('once.json'), 'utf8'));
    const apply = (...args: readonly string[]): Promise<CliResult> =>
      run('apply', path('once.json'), '--require-signature', path('signers'), ...args);
    /** Another operator restores the previous values. */
    const setBack = async (...args: readonly string[]): Promise<void> => {
      fleet(110);
      const { code, stderr } = await ofFleet('apply', '--yes', ...args);
      expect(code, stderr).toBe(0);
    };
    beforeAll(async () => {
      kept = [1, 2].map((host) => readFileSync(journal(host), 'utf8'));
      await setBack();
      fleet(60);
      await ofFleet('plan', '--out', path('once.json'), '--sign', path('key'));
      expect(await apply()).toMatchObject({ code: 0, stdout: '2 hosts: 2 changed.\n' });
    });
    afterAll(async () => {
      fleet(60);
      await ofFleet('apply', '--yes');
      for (const [i, text] of kept.entries()) writeFileSync(journal(i + 1), text);
    });
    const refused =
      /^node1: the plan was applied to this host at 20.*Z by .*@.*, and the host differs from it again\..*--again\. \[PLAN_ALREADY_APPLIED\]$/m;

    it('refuses the hosts that the plan changed and that were changed since', async () => {
      const { planDigest } = entries(1).at(-1) ?? {};
      expect(planDigest).toBe(planned().validity.digest);
      const { createdAt, expiresAt } = planned().validity;
      expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(3_600_000);
      await setBack('--limit', 'node1');
      for (const option of [[], ['--replan']]) {
        const { code, stdout, stderr } = await apply(...option);
        expect(stderr).toMatch(refused);
        expect([code, stdout]).toEqual([4, '2 hosts: 1 unchanged, 1 refused.\n']);
      }
      expect(entries(1).at(-1)).toMatchObject({ fields: [{ field: 'maxPods', before: 60, after: 110 }] });
    });

    it('changes them with --again, which is recorded', async () => {
      const { code, stdout, stderr } = await apply('--again');
      expect([code, stdout], stderr).toEqual([0, '2 hosts: 1 changed, 1 unchanged.\n']);
      expect(entries(1).at(-1)).toMatchObject({ again: true, fields: [{ field: 'maxPods', before: 110, after: 60 }] });
      expect((await ofFleet('apply', '--yes', '--again')).stderr).toContain('--again requires a saved plan');
    });

    it('accepts a newer plan of the same content', async () => {
      await setBack();
      fleet(60);
      expect((await ofFleet('plan', '--out', path('newer.json'))).code).toBe(0);
      expect(JSON.parse(readFileSync(path('newer.json'), 'utf8')).id).toBe(planned().id);
      expect(await run('apply', path('newer.json'))).toMatchObject({ code: 0, stdout: '2 hosts: 2 changed.\n' });
    });

    it.each<HistoryEntry['result']>(['rolled-back', 'started'])('resumes the hosts with the result %s', async (result) => {
      await setBack();
      const lines = entries(2).map((entry) => JSON.stringify({ ...entry, result: entry.planDigest === undefined ? entry.result : result }));
      writeFileSync(journal(2), `${lines.join('\n')}\n`);
      const { code, stdout, stderr } = await apply();
      expect([code, stdout]).toEqual([4, '2 hosts: 1 changed, 1 refused.\n']);
      expect(stderr).toMatch(refused);
      expect(entries(2).at(-1)).toMatchObject({ result: 'changed', fields: [{ field: 'maxPods', before: 110, after: 60 }] });
    });
  });

  it('is printed as a table and as JSON, and keeps control characters from the terminal', async () => {
    writeFileSync(
      journal(2),
      `${readFileSync(journal(2), 'utf8')}not json\n${JSON.stringify({ ...entries(2)[0], reason: '\u001b[31mred' })}\n`,
    );
    const lines = await events();
    expect(lines[0]).toMatch(/^TIME +RUN +HOST +OPERATOR +SSH USER +COMMAND +RESULT +IMPACT +REASON +CHANGES$/);
    const [first] = entries(1).slice(1);
    expect(lines.filter((line) => line.includes(`${first?.run?.slice(0, 8)} `))).toMatchObject([
      expect.stringMatching(/ node1 .* apply +changed +new-pods-only +ticket 7 +maxPods 110 → 60$/),
      expect.stringMatching(/ node2 .* apply +changed .* ticket 7 +11 operations$/),
      expect.stringMatching(/ node2 .* apply +changed .*x1b\[31mred /),
    ]);
    expect(lines.join('\n')).not.toContain('\u001b');
    const { hosts } = JSON.parse((await ofFleet('fleet', 'history', '-o', 'json')).stdout);
    const ofHosts = hosts.map(({ host, entries }: { host: string; entries: readonly { recordedIn: readonly string[] }[] }) => [
      host,
      entries.filter(({ recordedIn }) => recordedIn.includes('host')).length,
    ]);
    expect(ofHosts).toEqual([
      ['node1', 2],
      ['node2', 2],
    ]);
  });

  it('has each run once, also for a host that is unreachable', async () => {
    const merged = async (): Promise<readonly { host: string; isRead: boolean; entries: readonly Record<string, unknown>[] }[]> =>
      JSON.parse((await ofFleet('fleet', 'history', '-o', 'json')).stdout).hosts;
    const known = await merged();
    const ofRun = entries(2)[0]?.run ?? '';
    expect(known.flatMap(({ entries }) => entries.filter(({ run, reason }) => run === ofRun && reason === 'ticket 7'))).toMatchObject([
      { recordedIn: ['host', 'journal'], command: 'apply', result: 'changed' },
      { recordedIn: ['host', 'journal'], command: 'apply', result: 'changed' },
    ]);
    const lost = await runCommand(['fleet', 'history', '-f', path('fleet.yaml'), '-o', 'json', '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: path('state') },
      services: ({ connectHost }) => ({
        connectHost: async (target, ...more) => {
          if (target.member?.name !== 'node2') return connectHost(target, ...more);
          throw new AppError({ host: 'node2', code: 'HOST_UNREACHABLE', message: 'no route' });
        },
      }),
    });
    expect(lost.code).toBe(4);
    const [, node2] = JSON.parse(lost.stdout).hosts;
    expect(node2).toMatchObject({ host: 'node2', isRead: false });
    expect(node2.entries.filter(({ run }: { run: string }) => run === ofRun)).toMatchObject([
      {
        recordedIn: ['journal'],
        result: 'changed',
        reason: 'ticket 7',
        changes: expect.arrayContaining(['kubelet-start restart-unit kubelet']),
      },
    ]);
    const elsewhere = await runCommand(['fleet', 'history', '-f', path('fleet.yaml'), '-o', 'json', '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: path('another-machine') },
    });
    const [node1] = JSON.parse(elsewhere.stdout).hosts;
    expect(node1.entries.find(({ run }: { run: string }) => run === ofRun)).toMatchObject({ recordedIn: ['host'] });
  });

  it('has the start of a run that was killed', async () => {
    fleet(65);
    const writes: (readonly Operation[])[] = [];
    const killed = await runCommand(['apply', '--yes', '--limit', 'node1', '-f', path('fleet.yaml'), '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: path('state') },
      services: ({ connectHost }) => ({
        connectHost: async (...target) => {
          const host = await connectHost(...target);
          const perform: Host['perform'] = async (operations, options) => {
            // As after SIGKILL: no program follows the first one.
            if (writes.length > 0) throw new Error('killed');
            writes.push(operations);
            await host.perform(operations, options);
          };
          return { ...host, perform };
        },
      }),
    });
    expect(killed.code).toBe(1);
    expect(writes[0]?.slice(0, 2).map(({ kind }) => kind)).toEqual(['take-lock', 'append-journal']);
    expect(entries(1).at(-1)).toMatchObject({ result: 'started', fields: [{ field: 'maxPods', before: 60, after: 65 }] });
    const last = (await events()).findLast((line) => line.includes(' node1 '));
    expect(last).toMatch(/ apply +not completed +safe .*maxPods 60 → 65$/);
  });

  it('has the rollback of a run that did not record its end', async () => {
    const { id = '' } = entries(1).at(-1) ?? {};
    const state = join(lab.hosts[0]?.rootDir ?? '', COMMIT_DIRECTORY);
    const record = join(state, 'reverted/record');
    const lastResult = async (): Promise<string | undefined> =>
      (await events()).findLast((line) => line.includes(' node1 '))?.match(/ apply +(not completed|rolled-back) /)?.[1];
    // As the program on the host does.
    renameSync(join(state, 'commit'), dirname(record));
    const kept = readFileSync(record, 'utf8');
    writeFileSync(record, kept.replace(/^id .*$/m, 'id another-run'));
    expect(await lastResult()).toBe('not completed');
    writeFileSync(record, kept);
    expect(id.startsWith(/^id (.*)$/m.exec(kept)?.[1] ?? '-')).toBe(true);
    expect(await lastResult()).toBe('rolled-back');
    rmSync(dirname(record), { recursive: true });
  });

  it('does not fail a run when it cannot be written', async () => {
    fleet(70);
    rmSync(journal(2));
    writeFileSync(join(journal(2), '..', 'x'), '');
    rmSync(join(journal(2), '..'), { recursive: true });
    writeFileSync(join(journal(2), '..'), 'a file in place of the directory');
    chmodSync(join(journal(2), '..'), 0o600);
    const { code, stdout, stderr } = await ofFleet('apply', '--yes', '--limit', 'node2');
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('1 host: 1 changed.\n');
    expect(stderr).toMatch(
      /node2 warning: the change is not recorded in \/var\/log\/kubeletadm\/history\.jsonl: .*\[HISTORY_NOT_WRITTEN\]/,
    );
  });
});
