import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
const top = mkdtempSync(join(tmpdir(), 'kubeletadm-packages-'));
const dist = join(top, 'dist');
const binaries = findRealBinaries();
const noContainerd = whyNoKubelet();
const isRoot = process.getuid?.() === 0;

function whyNoPackages(): string | null {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'the artefacts are built for Linux on x64 here';
  return spawnSync('dpkg', ['--version']).status === 0 ? null : 'the image is built on Debian';
}

function whyNoRpm(): string | null {
  if (!isRoot) return 'installing into another root directory needs root';
  return spawnSync('rpm', ['--version']).status === 0 ? null : 'rpm is not installed';
}

function run(program: string, args: readonly string[], env: Readonly<Record<string, string | undefined>> = process.env): string {
  return execFileSync(program, args, { cwd: top, encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The only file in dist with a name that ends so. */
function artefact(end: string): string {
  const names = readdirSync(dist).filter((name) => name.endsWith(end));
  expect(names).toHaveLength(1);
  return join(dist, names[0] as string);
}

/** Files of every system package, in addition to the executable. */
const COMMON = [
  '/usr/share/bash-completion/completions/kubeletadm',
  '/usr/share/fish/vendor_completions.d/kubeletadm.fish',
  '/usr/share/kubeletadm/20-kubeletadm-agent.conf',
  '/usr/share/kubeletadm/kubeletadm-agent.service',
  '/usr/share/doc/kubeletadm/examples/bootstrap/init.yaml',
  '/usr/share/doc/kubeletadm/examples/bootstrap/join-worker.yaml',
  '/usr/share/man/man1/kubeletadm.1.gz',
];

describe.skipIf(requirement('packages', whyNoPackages()))('npm run package', () => {
  beforeAll(() => {
    run(process.execPath, [
      '--import',
      join(ROOT, 'node_modules/tsx/dist/esm/index.mjs'),
      join(ROOT, 'scripts/package/main.ts'),
      '--arch',
      'x64',
      '--out',
      dist,
      '--check',
    ]);
  });
  afterAll(() => rmSync(top, { recursive: true, force: true }));

  it('builds all artefacts with their checksums, and the same bytes twice', () => {
    const listed = readFileSync(join(dist, 'SHA256SUMS'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.slice(66));
    expect(listed).toEqual([
      `kubeletadm-${version}-1.x86_64.rpm`,
      `kubeletadm-${version}-image-x64.tar`,
      `kubeletadm-${version}.cdx.json`,
      `kubeletadm-${version}.tgz`,
      'kubeletadm-linux-x64',
      `kubeletadm_${version}_amd64.deb`,
    ]);
    execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: dist });
  });

  it('builds an npm package that npm i -g installs, with all commands', () => {
    run('npm', ['install', '--offline', '--global', '--prefix', join(top, 'npm'), artefact('.tgz')]);
    const program = join(top, 'npm/bin/kubeletadm');
    expect(run(program, ['--version'])).toBe(`${version}\n`);
    expect(run(program, ['config', 'print', 'init-defaults'])).toContain('kind: InitConfiguration');
  });

  it('lists the bundled packages and the embedded Node.js in the SBOM', () => {
    const { components } = JSON.parse(readFileSync(artefact('.cdx.json'), 'utf8')) as {
      readonly components: readonly { readonly 'bom-ref': string; readonly name: string; readonly version: string }[];
    };
    const notices = readFileSync(join(ROOT, 'dist/THIRD-PARTY-NOTICES.txt'), 'utf8');
    const bundled = [...notices.matchAll(/^(?:@[\w-]+\/)?[\w.-]+ \d+\.\d+\.\d+\S*(?= \()/gm)].map(([line]) => line.replace(' ', '@'));
    expect(bundled.length).toBeGreaterThan(20);
    const listed = new Set(components.map((component) => component['bom-ref']));
    expect(bundled.filter((each) => !listed.has(each))).toEqual([]);
    const [, embedded] = /Node\.js v(\S+)\)/.exec(run(artefact('linux-x64'), ['version', '-o', 'json'])) ?? [];
    expect(components).toContainEqual(expect.objectContaining({ name: 'node', version: embedded }));
  });

  it.skipIf(requirement('the RPM package', whyNoRpm()))('builds an RPM package that rpm verifies, installs and removes', () => {
    const root = join(top, 'rpm');
    mkdirSync(root);
    const rpm = (...args: readonly string[]): string => run('rpm', ['--root', root, ...args]);
    expect(run('rpm', ['--checksig', '--nosignature', artefact('.rpm')])).toContain('digests OK');
    rpm('--initdb');
    // The libraries are those of another distribution.
    rpm('--install', '--nodeps', artefact('.rpm'));
    expect(rpm('--query', 'kubeletadm').trim()).toBe(`kubeletadm-${version}-1.x86_64`);
    expect(rpm('--verify', '--nodeps', 'kubeletadm')).toBe('');
    expect(rpm('--query', '--list', 'kubeletadm').split('\n')).toEqual(
      expect.arrayContaining([...COMMON, '/usr/share/zsh/site-functions/_kubeletadm']),
    );
    expect(run(join(root, 'usr/bin/kubeletadm'), ['--version'])).toBe(`${version}\n`);
    rpm('--erase', 'kubeletadm');
    expect(readdirSync(join(root, 'usr/bin'))).toEqual([]);
    for (const directory of ['usr/share', 'usr/share/doc']) expect(readdirSync(join(root, directory))).not.toContain('kubeletadm');
  });

  it.skipIf(requirement('the image in a root directory of its own', isRoot ? null : 'chroot needs root'))(
    'builds an image with all that the program needs, for a user other than root',
    () => {
      const image = join(top, 'image');
      const rootfs = join(top, 'rootfs');
      for (const directory of [image, rootfs]) mkdirSync(directory);
      run('tar', ['-xf', artefact('.tar'), '-C', image]);
      const blob = (digest: string): string => join(image, 'blobs', digest.replace(':', '/'));
      const json = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T;
      interface Descriptor {
        readonly digest: string;
      }
      const { manifests } = json<{ readonly manifests: readonly [Descriptor] }>(join(image, 'index.json'));
      const manifest = json<{ readonly config: Descriptor; readonly layers: readonly Descriptor[] }>(blob(manifests[0].digest));
      for (const { digest } of manifest.layers) run('tar', ['-xzf', blob(digest), '-C', rootfs]);
      const { config } = json<{ readonly config: { readonly User: string; readonly Entrypoint: readonly [string] } }>(
        blob(manifest.config.digest),
      );
      const inside = (...args: readonly string[]): string =>
        run('chroot', [`--userspec=${config.User}`, rootfs, ...config.Entrypoint, ...args], {
          PATH: '/usr/sbin:/usr/bin',
          HOME: '/home/nonroot',
        });
      expect(config.User).toBe('65532:65532');
      expect(inside('--version')).toBe(`${version}\n`);
      expect(inside('config', 'print', 'init-defaults')).toContain('kind: InitConfiguration');
      expect(readFileSync(join(rootfs, 'etc/ssl/certs/ca-certificates.crt'), 'utf8')).toContain('BEGIN CERTIFICATE');
    },
  );

  describe.skipIf(requirement('the Debian package', whyNoLabHosts()))('on a Debian host without Node.js', () => {
    let lab: LabHosts;
    beforeAll(() => {
      // Real hosts have containerd.
      lab = noContainerd === null && typeof binaries !== 'string' ? startLabHosts(1, binaries.kubelet) : startLabHosts(1);
    });
    afterAll(() => lab?.close());

    /** The hosts of the lab may use cgroup v1. */
    const ON_CGROUP_V1 = '--ignore-preflight-errors=SystemVerification';

    it('installs, completes, initialises and removes', () => {
      lab.put('node1', '/root/kubeletadm.deb', readFileSync(artefact('.deb')));
      expect(spawnSync('ssh', ['-F', lab.sshConfig, 'node1', 'command -v node']).status).not.toBe(0);
      lab.run('node1', 'dpkg -i /root/kubeletadm.deb');
      // The base of the lab excludes documentation and manual pages.
      expect(lab.run('node1', "dpkg --verify kubeletadm | grep -vE ' /usr/share/(doc|man)/' || true")).toBe('');
      expect(lab.run('node1', 'kubeletadm --version')).toBe(`${version}\n`);
      for (const path of COMMON.filter((each) => !/^\/usr\/share\/(?:doc|man)\//.test(each))) lab.run('node1', `test -s ${path}`);
      expect(lab.run('node1', `bash -c '. ${COMMON[0]}; complete -p kubeletadm'`)).toContain('kubeletadm');
      lab.run('node1', 'systemd-analyze verify --man=no /usr/share/kubeletadm/kubeletadm-agent.service');
      expect(lab.run('node1', `kubeletadm init phase kubelet-start --node-name node1 --dry-run ${ON_CGROUP_V1}`)).toContain(
        '/var/lib/kubelet/config.yaml',
      );
      lab.run('node1', 'dpkg -r kubeletadm');
      expect(lab.run('node1', 'ls /usr/bin/kubeletadm /usr/share/kubeletadm 2>/dev/null || true')).toBe('');
    });

    it.skipIf(requirement('the image in containerd', noContainerd))('runs the image in containerd', () => {
      lab.importImage('node1', readFileSync(artefact('.tar')));
      const container = (words: string): string => lab.run('node1', `ctr -n k8s.io run --rm localhost/kubeletadm:${version} ${words}`);
      expect(container('first /usr/bin/kubeletadm --version')).toBe(`${version}\n`);
      expect(container('second')).toContain('Usage: kubeletadm');
    });
  });
});
