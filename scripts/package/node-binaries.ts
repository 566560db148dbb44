import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Architecture } from './system-package.ts';

/**
 * The Node.js of executables: a release with long-term support. The npm packages `node-linux-ARCH` contain the binaries
 * of nodejs.org; the registry serves a version unchanged, which the hashes check.
 */
export const EMBEDDED_NODE = {
  version: '24.21.0',
  x64: '61ecf27ad70afee991b671c28561eb497028294a67d132f9bbaac9ad73f81d3b',
  arm64: 'fba3076c16d21e5d814577436bdcb782b9b66bed09c6fa8278298e8933288bbb',
} as const;

/**
 * Downloads the Node.js of executables once for all builds.
 * @param cache a directory that builds keep
 * @returns the path of the binary; or the reason why it is not available
 */
export function nodeBinary(arch: Architecture, cache: string): { readonly path: string } | { readonly missing: string } {
  const name = `node-linux-${arch}`;
  const directory = join(cache, `${name}-${EMBEDDED_NODE.version}`);
  const path = join(directory, 'package/bin/node');
  if (existsSync(path)) return { path };
  const download = `${directory}.new`;
  rmSync(download, { recursive: true, force: true });
  mkdirSync(download, { recursive: true });
  try {
    const packed = execFileSync('npm', ['pack', '--silent', `${name}@${EMBEDDED_NODE.version}`], {
      cwd: download,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const archive = join(download, packed.trim().split('\n').at(-1) ?? '');
    const sha256 = createHash('sha256').update(readFileSync(archive)).digest('hex');
    if (sha256 !== EMBEDDED_NODE[arch])
      throw new Error(`${name}@${EMBEDDED_NODE.version} has the SHA-256 ${sha256}, expected ${EMBEDDED_NODE[arch]}`);
    execFileSync('tar', ['-xzf', archive, '-C', download, 'package/bin/node', 'package/LICENSE']);
    rmSync(archive);
    rmSync(directory, { recursive: true, force: true });
    renameSync(download, directory);
    return { path };
  } catch (error) {
    rmSync(download, { recursive: true, force: true });
    const { stderr, message } = error as { readonly stderr?: string; readonly message: string };
    const why =
      stderr
        ?.trim()
        .split('\n')
        .find((line) => line.includes('error')) ?? message.split('\n')[0];
    return { missing: `the npm package ${name}@${EMBEDDED_NODE.version} is not available: ${why}` };
  }
}
