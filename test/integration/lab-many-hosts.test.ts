import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import { startLabAgents } from '../../lab/lab-agents.ts';
import { createServices } from '../../src/wiring.ts';

it('runs more hosts than the default number of listeners without a warning of Node.js', { timeout: 60_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'ka-many-'));
  const warnings: string[] = [];
  const listener = (warning: Error): void => void warnings.push(warning.message);
  process.on('warning', listener);
  const { stdin, stdout, stderr } = process;
  const { signal } = new AbortController();
  const services = createServices({ env: { PATH: process.env.PATH ?? '' }, stdin, stdout, stderr, signal });
  const lab = await startLab({ directory: join(directory, 'lab'), hosts: 12 });
  try {
    const failed: unknown[] = [];
    const agents = await startLabAgents(services, { lab, names: [], trialMs: 1_000, failed: (_, error) => failed.push(error) });
    // Each host has connected when all of them can be closed.
    await Promise.all(
      lab.hosts.map(({ name }) => services.connectHost({ address: name, ssh: { configFile: lab.sshConfig } }).then((host) => host.close())),
    );
    await agents.close();
    expect(failed).toEqual([]);
    expect(warnings.filter((message) => message.includes('listeners'))).toEqual([]);
  } finally {
    process.off('warning', listener);
    await lab.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
