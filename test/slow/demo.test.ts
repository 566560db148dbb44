import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { untilTrue } from '../support/until-true.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const PREFIX = `npx --prefix ${ROOT} tsx ${ROOT}/src/bin.ts`;
/** On a busy computer; a quiet one takes half a minute. */
const TIMEOUT_MS = 240_000;

describe('the demo', () => {
  const directory = mkdtempSync(join(tmpdir(), 'demo-'));
  for (const name of ['home', 't', 'user', 'bin']) mkdirSync(join(directory, name));
  const env = { HOME: join(directory, 'home'), TMPDIR: join(directory, 't'), PATH: process.env.PATH ?? '' };
  const user = join(directory, 'user');
  let demo = '';
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** Starts a command line of a shell in the directory of the user. */
  function start(line: string, path = env.PATH) {
    const child = spawn('sh', ['-c', line], { cwd: user, env: { ...env, PATH: path }, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', (text: string) => (printed[name] += text));
    return { child, printed, ended: ended(child) };
  }

  async function run(line: string, path?: string) {
    const { printed, ended } = start(line, path);
    return { code: await ended, ...printed };
  }

  it('is announced with its length, plays five acts, and ends with a report and three commands', { timeout: TIMEOUT_MS }, async () => {
    const { code, stdout, stderr } = await run(`npm --prefix ${ROOT} start`);
    expect(code, stdout + stderr).toBe(0);
    const lines = stdout.split('\n').filter((line) => !/^>|^$/.test(line));
    expect(lines[0]).toMatch(/^This demo takes about half a minute\. /);
    expect(lines.filter((line) => /^\d\/5 .*\.$/.test(line))).toHaveLength(5);
    expect(lines.filter((line) => line.startsWith('✓ observed: '))).toHaveLength(5);
    expect(lines.length).toBeLessThanOrEqual(120);
    const report = /^ {2}(\S+\/report\.html)$/m.exec(stdout)?.[1] ?? expect.unreachable(stdout);
    expect(readFileSync(report, 'utf8')).toMatch(/<html[\s\S]*node2/);
    expect(stderr).toContain('fix the causes, then run: npx --prefix ');
    demo = stdout;
  });

  it('names three commands that run as printed from the directory of the user', { timeout: TIMEOUT_MS }, async () => {
    const [lab = '', explain = '', fleet = '', ...more] = [...demo.matchAll(/^ {2}(\S.*?) +# /gm)].map(([, command]) => command ?? '');
    expect([lab, explain, fleet, ...more]).toEqual([expect.stringMatching(/ lab --agents$/), expect.any(String), expect.any(String)]);
    expect(await run(explain)).toMatchObject({ code: 0, stdout: expect.stringContaining('FIELD: maxPods') });
    expect(await run(fleet)).toMatchObject({ code: 0, stdout: expect.stringContaining('kind: Fleet\n') });
    const { child, printed, ended } = start(lab);
    await untilTrue(() => /^Ctrl-C stops the lab\.$/m.test(printed.stdout) || child.exitCode !== null, 60_000);
    const commands = printed.stdout.split('\n').filter((line) => /^ {2}\S+ .*--(?:kubeconfig|ssh-config) /.test(line));
    expect(commands.length, printed.stdout + printed.stderr).toBeGreaterThan(6);
    for (const command of commands) expect(command).toMatch(/^ {2}(?:npx --prefix|kubectl --kubeconfig) /);
    expect(await run(commands[0] ?? '')).toMatchObject({ code: 0, stderr: expect.stringContaining('kubeadm-config') });
    // The shell of the test ends by the signal itself, without an exit code.
    process.kill(-(child.pid ?? 0), 'SIGINT');
    await ended;
    expect(readdirSync(user)).toEqual([]);
  });

  it('exits with an error when an act has another result than its sentence', { timeout: TIMEOUT_MS }, async () => {
    writeFileSync(join(directory, 'bin/sed'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    const { code, stdout } = await run(`${PREFIX} lab --demo`, `${join(directory, 'bin')}:${env.PATH}`);
    expect([code, stdout]).toEqual([1, expect.stringMatching(/^✗ not observed: config\.yaml of a worker does not have maxPods 60\n$/m)]);
    expect(stdout).not.toMatch(/^(?:3\/5|Next:)/m);
  });
});

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => child.once('error', reject).once('close', (code) => resolve(code)));
}
