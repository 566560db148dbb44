import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const BIN = fileURLToPath(new URL('../../src/bin.ts', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'ka-process-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function start(argv: readonly string[], stdout: 'pipe' | number = 'pipe'): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', BIN, ...argv], { stdio: ['ignore', stdout, 'pipe'] });
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  return ((await once(child, 'close')) as [number | null])[0];
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
    const silent = createServer();
    const connected = once(silent, 'connection');
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const child = start(['reset', '--force', '--host', `127.0.0.1:${(silent.address() as AddressInfo).port}`, '--connect-timeout', '60']);
    const said = text(child.stderr as NodeJS.ReadableStream);
    const exit = exitOf(child);
    await connected;
    child.kill(signal);
    expect([await exit, await said]).toEqual([code, `interrupted by ${signal}. Run the same command again to go on. [INTERRUPTED]\n`]);
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
