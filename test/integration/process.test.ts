import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { untilTrue } from '../support/until-true.ts';

const BIN = fileURLToPath(new URL('../../src/bin.ts', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'ka-process-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function start(argv: readonly string[], stdout: 'pipe' | number = 'pipe'): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', BIN, ...argv], { stdio: ['ignore', stdout, 'pipe'] });
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  return ((await once(child, 'close')) as [number | null])[0];
}

/** A host that takes connections and says nothing; `asked`: somebody has connected. */
async function silentHost() {
  const server = createServer();
  const asked = once(server, 'connection');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { reset: ['reset', '--force', '--host', `127.0.0.1:${port}`, '--connect-timeout', '60'], asked, close: () => server.close() };
}

const stage = (name: string): readonly string[] => [
  'init',
  'phase',
  'kubelet-start',
  '--node-name',
  'node1',
  '--rootfs',
  join(directory, name),
];

describe('the process', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('says that %s ended it, and is no bug', async (signal, code) => {
    const silent = await silentHost();
    const child = start(silent.reset);
    const said = text(child.stderr as NodeJS.ReadableStream);
    const exit = exitOf(child);
    await silent.asked;
    child.kill(signal);
    expect([await exit, await said]).toEqual([code, `interrupted by ${signal}. Run the same command again to go on. [INTERRUPTED]\n`]);
    silent.close();
  });

  it('is not ended by SIGHUP when it has no terminal that could have gone', async () => {
    const silent = await silentHost();
    const child = start(silent.reset);
    const exit = exitOf(child);
    await silent.asked;
    child.kill('SIGHUP');
    child.kill('SIGTERM');
    expect(await exit).toBe(143);
    silent.close();
  });

  it.skipIf(process.platform !== 'linux')('ends in peace when its terminal goes away', async () => {
    const silent = await silentHost();
    const [said, code] = [join(directory, 'said'), join(directory, 'code')];
    const command = [process.execPath, '--import', 'tsx', BIN, ...silent.reset].join(' ');
    // The shell of the terminal is told by the kernel, and all in its foreground when it has ended.
    const line = `(trap : HUP; ${command} 2>${said}; echo $? >${code}.new; mv ${code}.new ${code}); true`;
    const terminal = spawn('script', ['-qec', line, '/dev/null'], { stdio: 'ignore', env: { ...process.env, SHELL: '/bin/sh' } });
    await silent.asked;
    terminal.kill('SIGKILL');
    await untilTrue(() => existsSync(code));
    // What the shell says of the signal may follow.
    expect([readFileSync(code, 'utf8'), readFileSync(said, 'utf8').split('\n')[0]]).toEqual([
      '129\n',
      'interrupted by SIGHUP. Run the same command again to go on. [INTERRUPTED]',
    ]);
    silent.close();
  });

  it('finishes its work when nobody reads what it says', async () => {
    const child = start(stage('unread'));
    child.stdout?.destroy();
    child.stderr?.destroy();
    expect(await exitOf(child)).toBe(0);
    expect(readFileSync(join(directory, 'unread/var/lib/kubelet/kubeadm-flags.env'), 'utf8')).toContain('KUBELET_KUBEADM_ARGS');
  });

  it.skipIf(!existsSync('/dev/full'))('fails when the result cannot be written', async () => {
    const child = start([...stage('full'), '--dry-run', '-o', 'json'], openSync('/dev/full', 'w'));
    const said = text(child.stderr as NodeJS.ReadableStream);
    expect(await exitOf(child)).toBe(1);
    expect(await said).toMatch(/^cannot write to standard output: .*ENOSPC.* \[OUTPUT_UNWRITABLE\]$/m);
  });
});
