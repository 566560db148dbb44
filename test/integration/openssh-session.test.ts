import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { runSession } from '../../src/ssh/adapters/openssh/session.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { untilTrue } from '../support/until-true.ts';

const directory = mkdtempSync(join(tmpdir(), 'openssh-session-'));

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true, force: true });
});

/** In place of ssh: a host that starts commands only after a while, and on which they continue without their client. */
const SLOW_HOST = `#!/bin/sh
for command; do :; done
case $command in *kill*) exec /bin/sh -c "$command";; esac
{ sleep 0.5; exec setsid /bin/sh -c "$command"; } &
wait
`;

it('stops a command that the host starts after the abort', async () => {
  writeFileSync(join(directory, 'ssh'), SLOW_HOST);
  chmodSync(join(directory, 'ssh'), 0o755);
  vi.stubEnv('PATH', `${directory}:${process.env.PATH}`);
  const path = join(directory, 'pid');
  const master = { socket: join(directory, 'socket'), lost: null, onLost: () => () => undefined, end: async () => undefined };
  const signal = AbortSignal.timeout(100);
  const running = runSession(master, { name: 'node-1' } as SshTarget, ['sh', '-c', `echo $$ >${path}; exec sleep 60`], { signal });
  await expect(running).rejects.toThrow(/timeout/);
  await untilTrue(() => existsSync(path));
  const pid = readFileSync(path, 'utf8').trim();
  await untilTrue(() => !existsSync(`/proc/${pid}`) || readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z '));
});
