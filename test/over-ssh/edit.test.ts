import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('edit', { timeout: 180_000 }, () => {
  let directory: string;
  let lab: Lab;
  let fleet: string;
  const path = (name: string): string => join(directory, name);
  const configOf = (host: number): string => readFileSync(join(lab.hosts[host - 1]?.rootDir ?? '', '/var/lib/kubelet/config.yaml'), 'utf8');
  const questions: string[] = [];

  /** Runs `edit` with this command of the shell as editor. @param answer null: no terminal */
  async function edit(editor: string, answer: boolean | null, ...argv: readonly string[]): Promise<CliResult> {
    questions.length = 0;
    const confirm = async (question: string) => {
      questions.push(question);
      return answer;
    };
    const env = { XDG_STATE_HOME: path('state'), KUBE_EDITOR: editor };
    return runCommand(['edit', ...argv, '-f', fleet, '--ssh-config', lab.sshConfig], {
      env,
      services: () => ({ canAsk: answer !== null, confirm }),
    });
  }
  const keptIn = ({ stderr }: CliResult): string => /The edited text is kept in (\/\S+\.yaml)/.exec(stderr)?.[1] ?? '';

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-edit-'));
    fleet = path('fleet.yaml');
    lab = await startLab({ directory: path('lab'), hosts: 2 });
    await startFirstNode(lab);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const FILE = (): string => `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
# the same for all
baseline: {kubeletConfiguration: {maxPods: 70}}
hosts:
  - name: node1 # the first
    kubeletConfiguration: {podPidsLimit: 100}
  - name: node2
`;
  beforeEach(async () => {
    writeFileSync(fleet, FILE());
    const { code, stderr } = await runCommand(['apply', '--yes', '-f', fleet, '--ssh-config', lab.sshConfig], {
      env: { XDG_STATE_HOME: path('state') },
    });
    expect(code, stderr).toBe(0);
  });

  it('writes the fleet file after the question, and applies it', async () => {
    const declined = await edit('sed -i s/70/60/', false);
    expect([declined.code, questions]).toEqual([1, ['Apply these changes? [y/N] ']]);
    expect(declined.stdout).toContain('maxPods: 70 → 60');
    expect([readFileSync(fleet, 'utf8'), configOf(1).includes('maxPods: 70')]).toEqual([FILE(), true]);
    const kept = keptIn(declined);
    expect([readFileSync(kept, 'utf8').includes('maxPods: 60'), statSync(kept).mode & 0o777]).toEqual([true, 0o600]);
    rmSync(dirname(kept), { recursive: true });
    const accepted = await edit('sed -i s/70/60/', true);
    expect(accepted.code, accepted.stderr).toBe(0);
    expect([readFileSync(fleet, 'utf8'), configOf(1).includes('maxPods: 60'), configOf(2).includes('maxPods: 60')]).toEqual([
      FILE().replace('70', '60'),
      true,
      true,
    ]);
  });

  it('edits only the entry of a host, keeps the rest of the file, and changes only this host', async () => {
    const { code, stderr, stdout } = await edit(
      `cp "$1" ${path('opened')}; sed -i 's/podPidsLimit: 100/podPidsLimit: 200/'`,
      true,
      'node1',
    );
    expect(code, stderr).toBe(0);
    expect(readFileSync(path('opened'), 'utf8')).toMatch(/\n- name: node1 # the first\n {2}kubeletConfiguration: \{podPidsLimit: 100\}\n$/);
    expect(stdout).not.toContain('node2');
    expect([readFileSync(fleet, 'utf8'), configOf(1).includes('podPidsLimit: 200')]).toEqual([FILE().replace('100', '200'), true]);
  });

  it('writes a change that concerns no host after a question of its own', async () => {
    const { code, stderr } = await edit("sed -i 's/the first/number one/'", true);
    expect([code, questions], stderr).toEqual([0, [`No host is changed by this edit. Write ${fleet}? [y/N] `]]);
    expect(readFileSync(fleet, 'utf8')).toBe(FILE().replace('the first', 'number one'));
  });

  it('is cancelled without a change, also without a question for --yes', async () => {
    for (const [answer, more] of [
      [true, []],
      [null, ['--yes']],
    ] as const)
      expect(await edit('true', answer, ...more)).toMatchObject({ code: 0, stdout: 'Edit cancelled, no changes made.\n' });
    expect(await edit('true', null)).toMatchObject({ code: 2, stderr: expect.stringContaining('edit asks before it changes anything') });
  });

  it('opens an invalid entry again with its errors, and keeps the text if it is saved unchanged', async () => {
    const script = `cp "$1" ${path('opened')}; sed -i 's/podPidsLimit: 100/podPidsLimit: many/'`;
    const { code, stderr } = await edit(script, true, 'node1');
    expect([code, readFileSync(fleet, 'utf8')]).toEqual([2, FILE()]);
    expect(stderr).toContain('podPidsLimit');
    rmSync(dirname(keptIn({ code, stdout: '', stderr })), { recursive: true });
    const opened = readFileSync(path('opened'), 'utf8').split('\n');
    const line = Number(/^#\| {3}(\d+):/m.exec(opened.join('\n'))?.[1]);
    expect(opened[line - 1]).toBe('  kubeletConfiguration: {podPidsLimit: many}');
  });

  it('does not overwrite a file that another program has changed meanwhile', async () => {
    const result = await edit(`echo '# theirs' >> ${fleet}; sed -i s/70/60/`, true);
    expect([result.code, readFileSync(fleet, 'utf8')]).toEqual([3, `${FILE()}# theirs\n`]);
    rmSync(dirname(keptIn(result)), { recursive: true });
    expect(result.stderr).toContain('was changed during the edit, and was not written');
    expect(configOf(1)).toContain('maxPods: 70');
    expect(readdirSync(directory).filter((name) => name.includes('.kubeletadm.'))).toEqual([]);
  });
});
