import { describe, expect, it } from 'vitest';
import { fakeHost } from '../../support/fake-host.ts';
import { hostCommands } from '../../support/host-to-join.ts';
import { runCommand } from '../../support/run-cli.ts';

/** Runs `reset` without a terminal on a host that never joined. */
const reset = (...words: readonly string[]) => {
  const host = fakeHost({
    name: 'w1',
    units: {},
    files: {},
    commands: { ...hostCommands('w1'), date: { stdout: `${Math.floor(Date.now() / 1000)}\n` } },
  });
  return runCommand(['reset', ...words], { services: () => ({ connectHost: async () => host, canAsk: false }) });
};

describe('reset without a terminal', () => {
  it('runs a single phase of the local host without a confirmation, as kubeadm does', async () => {
    expect(await reset('phase', 'remove-etcd-member')).toMatchObject({ code: 0 });
  });

  it.each([[[]], [['phase', 'preflight']], [['phase', 'remove-etcd-member', '--host', 'w1']]])('%j needs --force', async (words) => {
    expect(await reset(...words)).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') });
  });
});
