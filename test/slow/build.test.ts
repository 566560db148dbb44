import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readProgram } from '../../src/host/adapters/large-file.ts';
import { programKind } from '../../src/kubelet/node-agent/agent-program.ts';
import { requirement } from '../support/requirement.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:0';

function whyNoExecutable(): string | null {
  if (process.platform !== 'linux') return 'executables are made on Linux';
  return readFileSync(process.execPath).includes(FUSE) ? null : 'this Node.js cannot embed a program (it uses a shared library)';
}

const elsewhere = mkdtempSync(join(tmpdir(), 'kubeletadm-build-'));
afterAll(() => rmSync(elsewhere, { recursive: true, force: true }));

/** Licence lines of the bundled packages that a built file lacks. */
function missingNotices(built: Buffer): readonly string[] {
  const expected = readFileSync(join(ROOT, 'dist/THIRD-PARTY-NOTICES.txt'), 'utf8');
  expect(expected).toMatch(/^ssh2 \d/m);
  expect(expected).toContain('Copyright Brian White');
  const own = readFileSync(join(ROOT, 'LICENSE'), 'utf8');
  const lines = new Set([...expected.split('\n'), ...own.split('\n')]);
  const plain = (text: string): string =>
    text
      .trim()
      .replace(/\\u([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      .replaceAll('\u00a9', '(c)')
      .replace(/[\u2018\u2019\u201c\u201d'"]/g, "'")
      .replace(/[\u2013\u2014]/g, '-');
  const from = built.indexOf(`kubeletadm ${version} (Apache-2.0)\n`);
  expect(from).toBeGreaterThan(0);
  const carried = new Set(
    built
      .subarray(from, from + 200_000)
      .toString()
      .split('\n')
      .map(plain),
  );
  return [...lines].map(plain).filter((line) => !carried.has(line));
}

/** Optional packages that dependencies require and that are not installed. */
const OPTIONAL = ['cpu-features', 'bufferutil', 'utf-8-validate', 'encoding', 'supports-color', 'punycode'];

/**
 * Plants modules in every directory where Node.js could look for one that a program in `top/above/bundle`
 * requires by name or by a relative path, and runs commands that load the SSH client, the Kubernetes client
 * and the proxy client.
 * @param install copies the program into a directory and returns its start command
 * @returns the planted files that were executed, and the number of commands that ran
 */
async function runPlanted(top: string, install: (directory: string) => readonly [string, ...string[]]): Promise<readonly string[]> {
  const bundle = join(top, 'above/bundle');
  const nodePath = join(top, 'node-path');
  const executed = join(top, 'executed');
  const payload = `require('node:fs').appendFileSync(${JSON.stringify(executed)}, __filename + '\\n');\n`;
  const put = (path: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, payload);
  };
  const installed = readdirSync(join(ROOT, 'node_modules')).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(ROOT, 'node_modules', name)).map((each) => `${name}/${each}`) : [name],
  );
  for (const folder of [join(bundle, 'node_modules'), join(top, 'above/node_modules'), join(top, 'cwd/node_modules'), nodePath])
    for (const name of new Set([...OPTIONAL, ...installed.filter((each) => !each.startsWith('.'))])) put(join(folder, name, 'index.js'));
  put(join(bundle, 'crypto/build/Release/sshcrypto.node.js'));
  put(join(top, 'cwd/crypto/build/Release/sshcrypto.node.js'));
  const [program, ...first] = install(bundle);
  // The planted modules work: a program that requires them executes them.
  appendFileSync(join(bundle, 'probe.cjs'), "require('cpu-features'); require('./crypto/build/Release/sshcrypto.node'); require('ws');\n");
  execFileSync(process.execPath, [join(bundle, 'probe.cjs')]);
  expect(readFileSync(executed, 'utf8').split('\n')).toHaveLength(4);
  rmSync(executed);

  const server = createServer((socket) => socket.on('error', () => undefined).end('SSH-2.0-x\r\n'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const user = (text: string): string => {
    const path = join(top, 'cwd', `${text.length}.conf`);
    const cluster = '{name: c, cluster: {server: "https://127.0.0.1:1"}}';
    const lines = `contexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [${cluster}]\nusers: [{name: u, user: ${text}}]\n`;
    writeFileSync(path, `apiVersion: v1\nkind: Config\ncurrent-context: c\n${lines}`);
    return path;
  };
  const plugin = '{exec: {apiVersion: client.authentication.k8s.io/v1, command: "true", interactiveMode: Never}}';
  const env = { PATH: process.env.PATH, HOME: join(top, 'cwd'), NODE_PATH: nodePath };
  const run = (argv: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    new Promise<string>((resolve) => {
      execFile(program, [...first, ...argv], { cwd: join(top, 'cwd'), env: { ...env, ...more } }, (_, __, stderr) => resolve(stderr));
    });
  try {
    expect(await run(['certs', 'check', '--host', `root@127.0.0.1:${port}`])).toContain('the key exchange failed');
    expect(await run(['csr', 'list', '--kubeconfig', user(plugin)])).toContain('the credential plugin');
    const proxy = { HTTPS_PROXY: `socks5://127.0.0.1:${port}`, DEBUG: '*' };
    expect(await run(['csr', 'list', '--kubeconfig', user('{token: x}')], proxy)).toContain('127.0.0.1');
  } finally {
    server.close();
  }
  return existsSync(executed) ? readFileSync(executed, 'utf8').trim().split('\n') : [];
}

describe('npm run build:package', () => {
  const npm = (...argv: readonly string[]) => execFileSync('npm', argv, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  beforeAll(() => void npm('run', 'build:package'));

  it('builds a package that installs without dependencies', () => {
    const tarball = join(ROOT, `dist/kubeletadm-${version}.tgz`);
    const files = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n');
    const built = ['dist/THIRD-PARTY-NOTICES.txt', 'dist/kubeletadm-agent.mjs', 'dist/kubeletadm.mjs'];
    expect(files.filter((file) => !/^package\/(?:docs|dist\/chunks)\//.test(file)).toSorted()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', ...built, 'package.json'].map((file) => `package/${file}`),
    );
    npm('install', '--offline', '--global', '--prefix', elsewhere, tarball);
    const program = join(elsewhere, 'bin/kubeletadm');
    expect(execFileSync(program, ['--version'], { cwd: elsewhere, encoding: 'utf8' })).toBe(`${version}\n`);
    expect(execFileSync(program, ['explain', 'HOST_LOCKED'], { cwd: elsewhere, encoding: 'utf8' })).toContain('--break-lock');
    // Templates and the kubelet catalogue are part of the package.
    const staged = ['init', 'phase', 'kubelet-start', '--node-name', 'node1', '--rootfs', join(elsewhere, 'image')];
    expect(spawnSync(program, staged, { cwd: elsewhere, encoding: 'utf8' })).toMatchObject({ status: 0 });
    expect(readFileSync(join(elsewhere, 'image/var/lib/kubelet/config.yaml'), 'utf8')).toContain('kind: KubeletConfiguration');
    expect(readdirSync(join(ROOT, 'dist/chunks')).filter((name) => !files.includes(`package/dist/chunks/${name}`))).toEqual([]);
  }, 120_000);

  it('builds an agent program that contains the licences of all its parts', () => {
    expect(missingNotices(readFileSync(join(ROOT, 'dist/kubeletadm-agent.mjs')))).toEqual([]);
  });

  it('builds an agent program of ASCII characters, which Node.js keeps in one byte each', () => {
    expect(readFileSync(join(ROOT, 'dist/kubeletadm-agent.mjs')).findIndex((byte) => byte > 0x7f)).toBe(-1);
  });

  it('builds a program that executes no module from outside itself', async () => {
    const executed = await runPlanted(join(elsewhere, 'planted'), (directory) => {
      for (const name of ['kubeletadm.mjs', 'chunks']) cpSync(join(ROOT, 'dist', name), join(directory, name), { recursive: true });
      return [process.execPath, join(directory, 'kubeletadm.mjs')];
    });
    expect(executed).toEqual([]);
  }, 120_000);

  it('builds an agent program with only the commands of hosts, in one file', () => {
    const copy = join(elsewhere, 'agent.mjs');
    copyFileSync(join(ROOT, 'dist/kubeletadm-agent.mjs'), copy);
    const run = (...argv: readonly string[]) => spawnSync(process.execPath, [copy, ...argv], { cwd: elsewhere, env: {}, encoding: 'utf8' });
    expect(run('--version')).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' });
    expect(run('agent', '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--node-name'), stderr: '' });
    expect(run('controller', '--help')).toMatchObject({ status: 0, stdout: expect.not.stringContaining('install'), stderr: '' });
    expect(run('fleet')).toMatchObject({ status: 2, stderr: expect.stringContaining('unknown command') });
  });

  it('builds a program that installs the agent program on hosts', async () => {
    const sent = await readProgram(undefined, { script: join(elsewhere, 'bin/kubeletadm'), executable: process.execPath });
    const agent = readFileSync(join(ROOT, 'dist/kubeletadm-agent.mjs'));
    expect(sent).toMatchObject({ size: agent.length, sha256: createHash('sha256').update(agent).digest('hex') });
  });
});

describe.skipIf(requirement('executables with embedded Node.js', whyNoExecutable()))('npm run build:sea', () => {
  it('builds an executable that needs no Node.js', () => {
    execFileSync(process.execPath, [join(ROOT, 'scripts/build-sea.mjs')], { stdio: 'pipe' });
    const built = join(ROOT, `dist/kubeletadm-linux-${process.arch}`);
    expect(programKind({ head: readFileSync(built).subarray(0, 64).toString('latin1') }).kind).toBe('executable');
    writeFileSync(join(elsewhere, 'program'), readFileSync(built), { mode: 0o755 });
    writeFileSync(join(elsewhere, 'kubelet.yaml'), 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPod: 1\n');
    const run = (...argv: readonly string[]) => spawnSync('./program', argv, { cwd: elsewhere, env: {}, encoding: 'utf8' });
    expect(run('--version')).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' });
    expect(run('agent', '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--node-name'), stderr: '' });
    expect(run('config', 'validate', 'kubelet.yaml', '--kubernetes-version', '1.34')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('Did you mean maxPods?'),
    });
    // The executable would send itself to a host.
    expect(run('dynamic', 'enable', 'localhost', '--kubeconfig', '/nonexistent').stderr).toContain('/nonexistent');
  }, 120_000);

  it('builds an executable that contains the licences of all its parts, including Node.js', () => {
    const executable = readFileSync(join(ROOT, `dist/kubeletadm-linux-${process.arch}`));
    expect(missingNotices(executable)).toEqual([]);
    expect(executable.includes(`\nNode.js ${process.version} (MIT`)).toBe(true);
  });

  it('builds an executable that executes no module from outside itself', async () => {
    const executed = await runPlanted(join(elsewhere, 'planted-executable'), (directory) => {
      const copy = join(directory, 'kubeletadm');
      copyFileSync(join(ROOT, `dist/kubeletadm-linux-${process.arch}`), copy);
      return [copy];
    });
    expect(executed).toEqual([]);
  }, 120_000);
});
