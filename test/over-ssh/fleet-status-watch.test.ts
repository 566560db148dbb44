import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { interrupted } from '../../src/base/errors.ts';
import { startFirstNode } from '../support/first-node.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

describe('fleet status --watch', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-status-watch-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 2 });
    const hosts = 'hosts: [{name: node1}, {name: node2}, {name: dead1, address: 127.0.0.1, ssh: {port: 1}}]';
    writeFileSync(
      join(directory, 'fleet.yaml'),
      `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\n${hosts}\n`,
    );
    await startFirstNode(lab);
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Runs the steps instead of the pauses between two reads, then interrupts the command. */
  async function watch(steps: readonly (() => void)[], ...argv: readonly string[]): Promise<CliResult> {
    const abort = new AbortController();
    let reads = 0;
    return runCommand(['fleet', 'status', '--watch', '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig, ...argv], {
      signal: abort.signal,
      services: ({ clock }) => ({
        clock: {
          now: () => clock.now(),
          sleep: async (ms, signal) => {
            if (ms !== 10_000) return clock.sleep(ms, signal);
            const step = steps[reads++];
            if (step === undefined) abort.abort(interrupted('SIGINT'));
            signal?.throwIfAborted();
            step?.();
          },
        },
      }),
    });
  }

  it('prints all rows, then those of hosts whose status changed, with the reason of unreachable hosts', async () => {
    // The kubelet of node2 has not joined, and reads no file.
    const config = join(lab.hosts[0]?.rootDir ?? '', 'var/lib/kubelet/config.yaml');
    const { code, stdout, stderr } = await watch([() => undefined, () => writeFileSync(config, 'kind: KubeletConfiguration\n')]);
    expect(code, stderr).toBe(130);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => line.split(/ +/)[0])).toEqual(['HOST', 'node1', 'node2', 'dead1', 'dead1:', 'node1']);
    expect(lines[4]).toContain('HOST_UNREACHABLE');
    expect(lines[5]).not.toBe(lines[1]);
    expect(lines[5]).toMatch(/^node1 +yes +v1\.36\.2 +[0-9a-f]{6,} /);
  });

  it('prints each host as an object of its own with -o jsonpath', async () => {
    const { stdout } = await watch([], '-o', 'jsonpath={.host}{"\\n"}', '--limit', 'node*');
    expect(stdout).toBe('node1\nnode2\n');
  });

  it('is refused together with --report', async () => {
    const { code, stderr } = await watch([], '--report', join(directory, 'x.html'));
    expect([code, stderr]).toEqual([2, expect.stringContaining('--watch and --report cannot be combined')]);
  });
});
