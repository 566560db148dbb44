import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

interface SshConfigCase {
  readonly name: string;
  readonly config: string;
  readonly hosts: readonly string[];
  readonly others?: Readonly<Record<string, string>>;
  readonly git?: readonly string[];
  /** Our comparison knows more than the text of `ssh -G`. */
  readonly normalizes?: boolean;
}

const CASES = parse(readFileSync(new URL('../data/ssh-configs.yaml', import.meta.url), 'utf8')) as readonly SshConfigCase[];
const directory = mkdtempSync(join(tmpdir(), 'ka-ssh-import-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Where ssh ends for a name, with its jump hosts; commands as they are. */
function machineOf(name: string, config: string): string {
  const { stdout } = spawnSync('ssh', ['-G', '-F', config, name], { encoding: 'utf8' });
  const setting = (keyword: string): string => new RegExp(`^${keyword} (.*)$`, 'm').exec(stdout)?.[1] ?? '';
  const jump = setting('proxyjump');
  return [setting('hostname').toLowerCase(), setting('port'), setting('proxycommand'), jump === '' ? '' : machineOf(jump, config)].join(
    ' ',
  );
}

describe('fleet init --from-ssh-config', () => {
  const missing = spawnSync('ssh', ['-V']).status === 0 ? null : 'ssh is not installed';
  it.each(CASES.map((one, index) => [one.name, one, index] as const))('%s', async (_, one, index) => {
    const config = join(directory, `config-${index}`);
    writeFileSync(config, one.config, { mode: 0o600 });
    const file = join(directory, `fleet-${index}.yaml`);
    const { code, stderr } = await runCommand(['fleet', 'init', '-f', file, '--from-ssh-config', config]);
    expect(code, stderr).toBe(0);
    const { others = {}, git = [] } = one;
    const names = [
      ...Object.entries(others).map(([name, first]) => `${name} (the same machine as ${first})`),
      ...git.map((name) => `${name} (a Git server)`),
    ];
    const [first, second] = stderr.split('\n');
    if (names.length > 0) expect(first).toBe(`not imported from ${config}: ${names.join(', ')}`);
    expect(names.length > 0 ? second : first).toContain('no control plane was found');
    const { stdout } = await runCommand(['fleet', 'inventory', '-f', file, '-o', 'json']);
    expect((JSON.parse(stdout) as { hosts: readonly { name: string }[] }).hosts.map(({ name }) => name)).toEqual(one.hosts);
    // ssh -G reports the same differences.
    if (missing !== null || one.normalizes === true) return;
    expect(new Set(one.hosts.map((name) => machineOf(name, config))).size).toBe(one.hosts.length);
    for (const [name, same] of Object.entries(others)) expect(machineOf(name, config)).toBe(machineOf(same, config));
  });
  requirement('machines of ssh_config as ssh -G reports them', missing);

  it('keeps the name that a fleet file selects', async () => {
    writeFileSync(join(directory, 'config'), CASES[0]?.config ?? '', { mode: 0o600 });
    const fleet = (imports: string): string => `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\n${imports}`;
    const file = join(directory, 'fleet.yaml');
    writeFileSync(file, fleet('imports: [{sshConfig: config, hosts: [w1-admin]}]\n'));
    expect((await runCommand(['fleet', 'inventory', '-f', file])).stdout).toContain('w1-admin');
    writeFileSync(file, fleet('imports: [{sshConfig: config, hosts: [w1]}]\nhosts: [{name: worker, address: 192.0.2.11}]\n'));
    expect(await runCommand(['fleet', 'validate', '-f', file])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('have the same address 192.0.2.11'),
    });
  });
});
