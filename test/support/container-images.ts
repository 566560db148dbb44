import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

export interface ImageInput {
  /** All names of the image. */
  readonly names: readonly string[];
  /** Local programs; each is copied to the path found by PATH, with the libraries it needs. */
  readonly programs: readonly string[];
  /** Shell scripts of the test, by program name. */
  readonly scripts?: Readonly<Record<string, string>>;
  readonly entrypoint?: readonly string[];
}

/** A container image with local programs, in the format of `ctr images import`. */
export function imageArchive({ names, programs, scripts = {}, entrypoint = [] }: ImageInput): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-image-'));
  try {
    const root = join(directory, 'root');
    for (const path of ['usr/local/bin', 'etc', 'tmp', 'lib64']) mkdirSync(join(root, path), { recursive: true });
    for (const program of programs) {
      copyFileSync(program, join(root, 'usr/local/bin', basename(program)));
      for (const library of librariesOf(program)) {
        mkdirSync(dirname(join(root, library)), { recursive: true });
        copyFileSync(library, join(root, library));
      }
    }
    for (const [name, text] of Object.entries(scripts)) writeFileSync(join(root, 'usr/local/bin', name), text, { mode: 0o755 });
    symlinkSync('usr/local/bin', join(root, 'bin'));
    execFileSync('tar', ['--owner=0', '--group=0', '-C', root, '-cf', join(directory, 'layer.tar'), '.']);
    rmSync(root, { recursive: true });
    const diffId = `sha256:${createHash('sha256')
      .update(readFileSync(join(directory, 'layer.tar')))
      .digest('hex')}`;
    const config = {
      architecture: { x64: 'amd64' }[process.arch as string] ?? process.arch,
      os: 'linux',
      config: { Entrypoint: entrypoint, Env: ['PATH=/usr/local/bin'] },
      rootfs: { type: 'layers', diff_ids: [diffId] },
    };
    writeFileSync(join(directory, 'config.json'), JSON.stringify(config));
    writeFileSync(join(directory, 'manifest.json'), JSON.stringify([{ Config: 'config.json', RepoTags: names, Layers: ['layer.tar'] }]));
    return execFileSync('tar', ['-C', directory, '-cf', '-', 'manifest.json', 'config.json', 'layer.tar'], { maxBuffer: 1024 ** 3 });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function librariesOf(program: string): readonly string[] {
  try {
    const reported = execFileSync('ldd', [program], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return [...reported.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path as string);
  } catch {
    // The program needs no libraries.
    return [];
  }
}
