import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decodeManifest } from '../../src/host/bundle/manifest.ts';
import { writeDockerArchive, writeOciArchive } from '../support/image-archives.ts';
import { runCommand } from '../support/run-cli.ts';

const CONTROL_PLANE = ['kube-apiserver:v1.36.2', 'kube-controller-manager:v1.36.2', 'kube-scheduler:v1.36.2', 'etcd:3.6.8-0'];
const EVERYWHERE = ['kube-proxy:v1.36.2', 'coredns/coredns:v1.14.2', 'pause:3.10.2'];
const REPOSITORY = 'registry.example.org';
const name = (image: string): string => `${REPOSITORY}/${image.replace('coredns/', '')}`;

let directory: string;
const at = (path: string): string => join(directory, path);

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'kubeletadm-bundle-test-'));
  for (const each of ['images', 'packages', 'bin']) mkdirSync(at(each));
  const { stdout } = await runCommand(['config', 'images', 'list', ...VERSION]);
  const etcd = stdout.split('\n').find((line) => line.includes('/etcd:')) as string;
  await writeOciArchive(at('images/components.tar.gz'), { images: [...CONTROL_PLANE.slice(0, 3).map(name), etcd] });
  for (const image of EVERYWHERE)
    await writeDockerArchive(at(`images/${image.replace(/\W/g, '-')}.tar`), { images: [name(image)], layer: Buffer.alloc(300_000, image) });
  writeFileSync(at('packages/kubelet_1.36.2-1.1_amd64.deb'), 'a package');
  writeFileSync(at('packages/containerd.io-2.1.4-1.el9.x86_64.rpm'), 'another package');
  writeFileSync(at('bin/kubelet'), Buffer.alloc(100_000, 1));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const VERSION = ['--kubernetes-version', 'v1.36.2', '--image-repository', REPOSITORY];
const create = (...args: readonly string[]) =>
  runCommand(['bundle', 'create', '-o', at('bundle.tar'), '--arch', 'amd64', ...VERSION, '--images-from', at('images'), ...args]);
const show = (...args: readonly string[]) => runCommand(['bundle', 'show', at('bundle.tar'), ...args]);

describe('bundle create', () => {
  it('writes images, packages and files with a manifest that tar and sha256sum confirm', async () => {
    expect(await create('--package', at('packages'), '--file', at('bin/kubelet'))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/bundle\.tar: Kubernetes v1\.36\.2, amd64, 7 images, 2 packages, 1 file, 1\.\d MB\n$/),
      stderr: '',
    });
    const manifest = JSON.parse((await show('-o', 'json')).stdout);
    execFileSync('tar', ['-xf', at('bundle.tar'), '-C', directory, '--one-top-level=unpacked']);
    expect(JSON.parse(readFileSync(at('unpacked/manifest.json'), 'utf8'))).toEqual(manifest);
    const sums = manifest.contents.map(({ sha256, path }: { sha256: string; path: string }) => `${sha256}  ${path}\n`).join('');
    execFileSync('sha256sum', ['--check', '--quiet', '-'], { cwd: at('unpacked'), input: sums });
    expect(manifest.contents.filter(({ hosts }: { hosts?: string }) => hosts === 'control-planes')).toMatchObject([
      { images: [...CONTROL_PLANE.slice(0, 3).map(name), expect.stringMatching(/\/etcd:/)].sort() },
    ]);
    expect(manifest.contents.filter(({ type }: { type: string }) => type === 'package')).toMatchObject([
      { name: 'containerd.io', version: '2.1.4-1.el9', format: 'rpm' },
      { name: 'kubelet', version: '1.36.2-1.1', format: 'deb' },
    ]);
    expect((await show('--verify')).stdout).toContain('All checksums match.');
  });

  it('writes equal bytes for equal inputs', async () => {
    await create('--file', at('bin'));
    cpSync(at('bundle.tar'), at('first.tar'));
    chmodSync(at('bin/kubelet'), 0o755);
    await create('--file', at('bin'));
    expect(readFileSync(at('bundle.tar')).equals(readFileSync(at('first.tar')))).toBe(true);
  });

  it('lists the images that are in no archive, and writes nothing', async () => {
    const { code, stderr } = await create('--image', 'flannel/flannel:v0.27.4');
    expect(code).toBe(2);
    expect(stderr).toContain('no archive of --images-from contains docker.io/flannel/flannel:v0.27.4');
    expect(readdirSync(directory).sort()).toEqual(['bin', 'images', 'packages']);
  });

  it.each([
    ['busybox', 'busybox:latest'],
    ['busybox', 'library/busybox'],
    ['docker.io/library/busybox:1.36', 'busybox:1.36'],
    ['flannel/flannel:v0.27.4', 'flannel/flannel:v0.27.4'],
  ])('finds %s in an archive with the short name %s', async (wanted, saved) => {
    await writeDockerArchive(at('images/short.tar'), { images: [saved] });
    const { code, stderr } = await create('--image', wanted);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect((await show()).stdout).toMatch(/^IMAGE +docker\.io\/(?:library\/busybox|flannel\/flannel):[\w.]+ +0\.0 MB/m);
  });

  it('does not take a tag alone for the name of an image', async () => {
    const tagged = at('images/tag.tar.gz');
    await writeOciArchive(tagged, { images: ['busybox:1.36'], isNamed: false });
    const { code, stderr } = await create('--image', '1.36');
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('contains docker.io/library/1.36:latest') });
  });

  it('fetches these images with skopeo', async () => {
    await writeDockerArchive(at('flannel'), { images: ['docker.io/flannel/flannel:v0.27.4'] });
    const asked: string[][] = [];
    const { code, stderr } = await runCommand(
      [
        'bundle',
        'create',
        '-o',
        at('bundle.tar'),
        '--arch',
        'amd64',
        ...VERSION,
        '--images-from',
        at('images'),
        '--image',
        'flannel/flannel:v0.27.4',
        '--images-with',
        'skopeo',
      ],
      {
        services: () => ({
          runLocal: async (argv) => {
            asked.push([...argv]);
            cpSync(at('flannel'), argv.at(-1)?.split(':')[1] as string);
            return '';
          },
        }),
      },
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'fetching docker.io/flannel/flannel:v0.27.4\n' });
    expect(asked).toEqual([
      [
        'skopeo',
        'copy',
        '--quiet',
        '--override-os',
        'linux',
        '--override-arch',
        'amd64',
        'docker://docker.io/flannel/flannel:v0.27.4',
        expect.stringMatching(/^docker-archive:\/.*\/0\.tar:docker\.io\/flannel\/flannel:v0\.27\.4$/),
      ],
    ]);
    expect((await show()).stdout).toMatch(/IMAGE +docker\.io\/flannel\/flannel:v0\.27\.4 +0\.0 MB/);
  });

  it('refuses images and packages of another architecture, and files that are no packages', async () => {
    await writeDockerArchive(at('images/pause-3-10-2.tar'), { images: [name('pause:3.10.2')], architecture: 'arm64' });
    expect((await create()).stderr).toMatch(
      /pause-3-10-2\.tar has images for arm64, but the bundle is for amd64.*\[BUNDLE_WRONG_ARCHITECTURE\]/,
    );
    rmSync(at('images'), { recursive: true });
    const onlyPackages = (path: string) =>
      runCommand(['bundle', 'create', '-o', at('bundle.tar'), ...VERSION, '--arch', 'arm64', '--images-with', 'ctr', '--package', path]);
    expect((await onlyPackages(at('packages'))).stderr).toContain('[BUNDLE_WRONG_ARCHITECTURE]');
    expect((await onlyPackages(at('bin/kubelet'))).stderr).toContain('[BUNDLE_INPUT]');
  });

  it.each(['manifest.json', 'files/kubelet', 'extra'])('refuses a second or unlisted entry %s, which tar would extract', async (entry) => {
    await create();
    const before = await show('--verify');
    mkdirSync(at('more/files'), { recursive: true });
    writeFileSync(at(`more/${entry}`), 'other');
    execFileSync('tar', ['-C', at('more'), '--format=ustar', '-rf', at('bundle.tar'), entry]);
    const { code, stderr } = await show('--verify');
    expect([before.code, code]).toEqual([0, 2]);
    expect(stderr).toMatch(new RegExp(`the entry ${entry} is not the next one of its manifest.*\\[BUNDLE_INVALID\\]`, 's'));
  });

  it.each(['files/.', 'files/..', 'images/..'])('refuses the path %s in a manifest', (path) => {
    const contents = [{ type: 'file', path, sha256: '0'.repeat(64), size: 0 }];
    const text = JSON.stringify({
      apiVersion: 'kubeletadm.dev/v1alpha1',
      kind: 'Bundle',
      kubernetesVersion: 'v1.36.2',
      architecture: 'amd64',
      contents,
    });
    expect(() => decodeManifest(text, 'bundle.tar')).toThrow('its manifest is invalid at contents.0.path');
    expect(() => decodeManifest(text.replace(path, 'files/..a'), 'bundle.tar')).not.toThrow();
  });

  it('warns about archives without a wanted image', async () => {
    await writeDockerArchive(at('images/other.tar'), { images: ['docker.io/library/other:1'] });
    writeFileSync(at('images/README'), 'no archive');
    const { code, stderr } = await create();
    expect(code).toBe(0);
    expect(stderr).toMatch(/README is not an archive of images/);
    expect(stderr).toMatch(/no image of .*other\.tar is used: docker\.io\/library\/other:1/);
  });
});

describe('bundle show', () => {
  it('reports a truncated, changed or foreign file', async () => {
    await create('--file', at('bin'));
    const whole = readFileSync(at('bundle.tar'));
    const changed = Buffer.from(whole);
    changed[statSync(at('bundle.tar')).size - 250_000] = 7;
    writeFileSync(at('bundle.tar'), changed);
    expect((await show()).code).toBe(0);
    expect(await show('--verify')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/the SHA-256 of images\/\S+ differs.*\[BUNDLE_INVALID\]/),
    });
    writeFileSync(at('bundle.tar'), whole);
    truncateSync(at('bundle.tar'), 500_000);
    expect(await show()).toMatchObject({ code: 2, stderr: expect.stringContaining('it is incomplete') });
    execFileSync('tar', ['-cf', at('bundle.tar'), '-C', directory, 'bin']);
    expect(await show()).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('was not created by kubeletadm bundle create, or it is damaged'),
    });
    writeFileSync(at('bundle.tar'), 'no tar archive');
    expect((await show()).stderr).toContain('[BUNDLE_INVALID]');
  });
});
