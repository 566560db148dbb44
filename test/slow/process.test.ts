import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, it } from 'vitest';
import { builtProgram } from '../support/run-bundle.ts';
import { startSshServer } from '../support/ssh-server.ts';
import { untilTrue } from '../support/until-true.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-process-'));
const program = builtProgram();
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function start(argv: readonly string[], stdout: 'pipe' | number = 'pipe'): ChildProcess {
  return spawn(process.execPath, [program, ...argv], { stdio: ['ignore', stdout, 'pipe'] });
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  return ((await once(child, 'close')) as [number | null])[0];
}

/** A host that accepts connections and sends nothing; `asked` resolves at the first connection. */
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
  ] as const)('reports the interruption by %s as such and not as a bug', async (signal, code) => {
    const silent = await silentHost();
    const child = start(silent.reset);
    const reported = text(child.stderr as NodeJS.ReadableStream);
    const exit = exitOf(child);
    await silent.asked;
    child.kill(signal);
    expect([await exit, await reported]).toEqual([code, `interrupted by ${signal}. Rerun the same command to resume. [INTERRUPTED]\n`]);
    silent.close();
  });

  it('ignores SIGHUP when it has no controlling terminal', async () => {
    const silent = await silentHost();
    const child = start(silent.reset);
    const exit = exitOf(child);
    await silent.asked;
    child.kill('SIGHUP');
    child.kill('SIGTERM');
    expect(await exit).toBe(143);
    silent.close();
  });

  it.skipIf(process.platform !== 'linux')('exits cleanly when its terminal closes', async () => {
    const silent = await silentHost();
    const [reported, code] = [join(directory, 'stderr'), join(directory, 'code')];
    const command = [process.execPath, program, ...silent.reset].join(' ');
    // The kernel signals the shell of the terminal, and the whole foreground group when the shell has exited.
    const line = `(trap : HUP; ${command} 2>${reported}; echo $? >${code}.new; mv ${code}.new ${code}); true`;
    const terminal = spawn('script', ['-qec', line, '/dev/null'], { stdio: 'ignore', env: { ...process.env, SHELL: '/bin/sh' } });
    await silent.asked;
    terminal.kill('SIGKILL');
    await untilTrue(() => existsSync(code));
    // A message of the shell about the signal may follow.
    expect([readFileSync(code, 'utf8'), readFileSync(reported, 'utf8').split('\n')[0]]).toEqual([
      '129\n',
      'interrupted by SIGHUP. Rerun the same command to resume. [INTERRUPTED]',
    ]);
    silent.close();
  });

  it('finishes its work when its output has no reader', async () => {
    const child = start(stage('unread'));
    child.stdout?.destroy();
    child.stderr?.destroy();
    expect(await exitOf(child)).toBe(0);
    expect(readFileSync(join(directory, 'unread/var/lib/kubelet/kubeadm-flags.env'), 'utf8')).toContain('KUBELET_KUBEADM_ARGS');
  });

  it.skipIf(!existsSync('/dev/full'))('fails when the result cannot be written', async () => {
    const child = start([...stage('full'), '--dry-run', '-o', 'json'], openSync('/dev/full', 'w'));
    const reported = text(child.stderr as NodeJS.ReadableStream);
    expect(await exitOf(child)).toBe(1);
    expect(await reported).toMatch(/^cannot write to standard output: .*ENOSPC.* \[OUTPUT_UNWRITABLE\]$/m);
  });
});

describe('passwords in the environment', () => {
  const SECRETS = {
    KUBELETADM_SSH_PASSWORD: 's3cret-ssh',
    KUBELETADM_SUDO_PASSWORD: 's3cret-sudo',
    KUBELETADM_SSH_PASSPHRASE: 's3cret-phrase',
  };
  const file = (name: string, content: string, mode = 0o600): string => {
    const path = join(directory, name);
    writeFileSync(path, content, { mode });
    return path;
  };
  const seen = (name: string): string => join(directory, `${name}-environment`);

  it.each<[string, Partial<typeof SECRETS>, () => readonly string[]]>([
    [
      'the command of a Match exec',
      SECRETS,
      () => [
        'certs',
        'check',
        '--host',
        'edge',
        '--ssh-config',
        file('exec', `Match exec "env > ${seen('exec')}"\n  HostName 127.0.0.1\n  Port 1\n`),
      ],
    ],
    [
      "the system's ssh and its ProxyCommand",
      { KUBELETADM_SUDO_PASSWORD: SECRETS.KUBELETADM_SUDO_PASSWORD, KUBELETADM_SSH_PASSPHRASE: SECRETS.KUBELETADM_SSH_PASSPHRASE },
      () => [
        ...['certs', 'check', '--host', 'edge', '--ssh-transport', 'openssh', '--ssh-config'],
        file(
          'proxy',
          `Host edge\n  HostName 127.0.0.1\n  ProxyCommand sh -c 'env > ${seen('proxy')}.new; mv ${seen('proxy')}.new ${seen('proxy')}'\n`,
        ),
      ],
    ],
    [
      'a local program',
      SECRETS,
      () => [
        ...['config', 'validate', file('kubelet.yaml', 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n')],
        ...['--kubelet', file('kubelet', `#!/bin/sh\nenv > ${seen('local')}\n`, 0o755)],
      ],
    ],
  ])('are not passed to %s', async (_, secrets, argv) => {
    const args = argv();
    const child = spawn(process.execPath, [program, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...secrets },
    });
    const reported = text(child.stderr as NodeJS.ReadableStream);
    await exitOf(child);
    const written = (): readonly string[] => ['exec', 'proxy', 'local'].map(seen).filter((path) => existsSync(path));
    // A ProxyCommand may outlive the ssh that started it.
    await expect.poll(written, { timeout: 10_000, message: await reported }).toHaveLength(1);
    const [path = ''] = written();
    const environment = readFileSync(path, 'utf8');
    rmSync(path);
    expect(environment).toMatch(/^PATH=/m);
    expect(environment).not.toMatch(/s3cret|KUBELETADM_S/);
  });

  it('are still used', async () => {
    const server = await startSshServer({ password: SECRETS.KUBELETADM_SSH_PASSWORD });
    const known = file('known', `[127.0.0.1]:${server.port} ${server.hostKey}\n`);
    const argv = [
      'fleet',
      'exec',
      '-f',
      file('fleet.yaml', 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts:\n  - {name: n1, address: 127.0.0.1}\n'),
    ];
    const config = file('password', `Host *\n  Port ${server.port}\n  User tester\n  IdentityFile none\n  UserKnownHostsFile ${known}\n`);
    const child = spawn(process.execPath, [program, ...argv, '--ssh-config', config, '--become', 'none', '--', 'echo', 'in'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...SECRETS },
    });
    const [reported, printed] = [text(child.stderr as NodeJS.ReadableStream), text(child.stdout as NodeJS.ReadableStream)];
    expect([await exitOf(child), await reported]).toEqual([0, expect.anything()]);
    expect(await printed).toContain('in\n');
    await server.stop();
  });
});
