import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from '../support/first-node.ts';
import { writeDockerArchive } from '../support/image-archives.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const REPOSITORY = 'registry.example.org';
const KUBECTL = Buffer.alloc(2_000_000, 'kubectl');

/** The containerd of the lab's host: its images are lines of a file. A file `broken` makes imports fail. */
const CTR = `#!/bin/sh
store=$KUBELETADM_ROOT/containerd
case "$*" in
  *version) ;;
  *"images import "*) for f; do :; done; [ ! -e "$store.broken" ] || { echo 'ctr: no space left on device' >&2; exit 1; }
    tar -xOf "$KUBELETADM_ROOT$f" manifest.json | sed 's/.*"RepoTags":\\["\\([^"]*\\)".*/\\1/' >> "$store" && echo >> "$store";;
  *) exit 1;;
esac
`;
const CRICTL = `#!/bin/sh
case "$*" in *"images --output json") cat "$KUBELETADM_ROOT/containerd" 2>/dev/null; exit 0;; esac
exit 1
`;

describe('apply --bundle', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  const servers: Server[] = [];
  const at = (path: string): string => join(directory, path);
  const onHost = (path: string): string => join(lab.hosts[0]?.rootDir ?? '', path);
  const run = (command: string, ...args: readonly string[]): Promise<CliResult> =>
    runCommand([command, ...args, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: at('state') } });
  const fleet = (): readonly string[] => ['-f', at('fleet.yaml'), '--allow', 'unsafe', '--bundle', at('bundle.tar')];
  const images = (): readonly string[] => readFileSync(onHost('containerd'), 'utf8').trim().split('\n').sort();

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-fb-'));
    lab = await startLab({ directory: at('lab'), hosts: 1 });
    await startFirstNode(lab);
    for (const [name, text] of [
      ['ctr', CTR],
      ['crictl', CRICTL],
    ] as const) {
      writeFileSync(at(`lab/bin/${name}`), text);
      chmodSync(at(`lab/bin/${name}`), 0o755);
    }
    // The host's files are below its root, but the commands of the runtime see the whole system.
    for (const path of [at('cri.sock'), onHost(at('cri.sock'))]) {
      mkdirSync(dirname(path), { recursive: true });
      const server = createServer();
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(path, resolve));
    }
    mkdirSync(onHost(at('tools')));
    symlinkSync(onHost(at('tools')), at('tools'));
    mkdirSync(at('images'));
    const listed = await runCommand(['config', 'images', 'list', '--image-repository', REPOSITORY]);
    for (const [index, image] of listed.stdout.trim().split('\n').entries())
      await writeDockerArchive(at(`images/${index}.tar`), { images: [image], layer: Buffer.alloc(2_000_000, index + 1) });
    writeFileSync(at('kubectl'), KUBECTL);
    const sha256 = createHash('sha256').update(KUBECTL).digest('hex');
    writeFileSync(
      at('fleet.yaml'),
      `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
cluster: {kubeconfig: ${lab.kubeconfig}}
hosts:
  - name: node1
    criSocket: unix://${at('cri.sock')}
    install: binaries
    binaries:
      source: https://dl.k8s.io/v1.36.2/bin/linux/amd64
      files: [{name: kubectl, sha256: "${sha256}", path: ${at('tools/kubectl')}}]
`,
    );
    const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
    const created = await runCommand([
      'bundle',
      'create',
      '-o',
      at('bundle.tar'),
      '--arch',
      architecture,
      '--image-repository',
      REPOSITORY,
      '--images-from',
      at('images'),
      '--file',
      at('kubectl'),
    ]);
    expect(created.code, created.stderr).toBe(0);
  });
  afterAll(async () => {
    for (const server of servers) server.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('plans the missing images with their sizes, imports them, installs files, and does nothing in a second run', async () => {
    const plan = await run('plan', ...fleet());
    expect(plan.code, plan.stderr).toBe(0);
    expect(plan.stdout).toMatch(
      /^ {2}\+ \/var\/lib\/kubeletadm\/uploads\/\w+ \(2\.0 MB\): registry\.example\.org\/pause:\S+: not on the host$/m,
    );
    expect(plan.stdout).toMatch(/^ {2}~ import images registry\.example\.org\/kube-proxy:\S+: not on the host$/m);
    expect(plan.stdout).toMatch(/^ {2}\+ \/\S+\/tools\/kubectl \(2\.0 MB\)$/m);
    expect(plan.stdout).not.toContain('kube-apiserver');
    writeFileSync(onHost('containerd.broken'), '');
    const failed = await run('apply', ...fleet(), '--yes');
    expect(failed).toMatchObject({
      code: expect.any(Number),
      stderr: expect.stringMatching(/importing registry\.example\.org\S+ failed: ctr: no space left/),
    });
    expect(failed.code).not.toBe(0);
    // The next run does not send it again.
    expect(readdirSync(onHost('var/lib/kubeletadm/uploads'))).toHaveLength(1);
    expect(readFileSync(onHost(at('tools/kubectl'))).equals(KUBECTL)).toBe(true);
    rmSync(onHost('containerd.broken'));
    const applied = await run('apply', ...fleet(), '--yes');
    expect(applied.code, applied.stderr).toBe(0);
    expect(images().map((image) => image.replace(/:.*/, ''))).toEqual(
      ['coredns', 'kube-proxy', 'pause'].map((name) => `${REPOSITORY}/${name}`),
    );
    expect(readdirSync(onHost('var/lib/kubeletadm/uploads')).filter((name) => name.endsWith('.part'))).toEqual([]);
    const second = await run('apply', ...fleet(), '--yes');
    expect(second, second.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('1 unchanged') });
  });

  it('copies only the images that are missing', async () => {
    writeFileSync(onHost('containerd'), `${images().slice(0, 2).join('\n')}\n`);
    const plan = await run('plan', ...fleet());
    expect(plan.stdout.match(/import images/g)).toEqual(['import images']);
    expect((await run('apply', ...fleet(), '--yes')).code).toBe(0);
    expect(images()).toHaveLength(3);
  });

  it('is applied from a saved plan with the same bundle, and refused without it', async () => {
    rmSync(onHost('containerd'));
    expect((await run('plan', ...fleet(), '--out', at('plan.json'))).code).toBe(0);
    const without = await run('apply', at('plan.json'));
    expect(without).toMatchObject({ stderr: expect.stringContaining('was made with a bundle. Pass the same bundle') });
    expect(existsSync(onHost('containerd'))).toBe(false);
    const applied = await run('apply', at('plan.json'), '--bundle', at('bundle.tar'));
    expect(applied.code, applied.stderr).toBe(0);
    expect(images()).toHaveLength(3);
  });

  it('refuses a host of another architecture, and a runtime without a program that imports', async () => {
    const other = process.arch === 'arm64' ? 'amd64' : 'arm64';
    await writeDockerArchive(at('other.tar'), { images: ['docker.io/library/x:1'], architecture: other });
    const names = (await runCommand(['config', 'images', 'list', '--image-repository', REPOSITORY])).stdout.trim().split('\n');
    await writeDockerArchive(at('all.tar'), { images: names, architecture: other });
    const created = await runCommand([
      'bundle',
      'create',
      '-o',
      at('other-bundle.tar'),
      '--arch',
      other,
      '--image-repository',
      REPOSITORY,
      '--images-from',
      at('all.tar'),
    ]);
    expect(created.code, created.stderr).toBe(0);
    const refused = await run('plan', '-f', at('fleet.yaml'), '--bundle', at('other-bundle.tar'));
    expect(refused.stdout + refused.stderr).toContain('[BUNDLE_WRONG_ARCHITECTURE]');
    writeFileSync(at('lab/bin/ctr'), '#!/bin/sh\nexit 1\n');
    const noImporter = await run('plan', ...fleet());
    expect(noImporter.stdout + noImporter.stderr).toContain('[BUNDLE_NO_IMPORTER]');
  });
});
