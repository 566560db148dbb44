import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** The content of a Debian package. */
export interface TestPackage {
  readonly name: string;
  readonly version: string;
  readonly depends?: string;
  /** Content by path on the host; all files except units are executable. */
  readonly files: Readonly<Record<string, string | Buffer>>;
}

/** A flat repository for apt, signed with its own key, on a port of the local loopback address. */
export interface PackageRepository {
  readonly port: number;
  /** Path of its public key, and that key's fingerprint. */
  readonly key: string;
  readonly fingerprint: string;
  /** The served directory: packages are in `deb/`. */
  readonly directory: string;
  /** The requested paths. */
  readonly asked: readonly string[];
  /** Publishes another set of packages with a new signature. */
  publish(packages: readonly TestPackage[]): void;
  close(): Promise<void>;
}

/** The reason why no repository can be created; null when one can. */
export function whyNoRepository(): string | null {
  const missing = ['dpkg-deb', 'gpg'].filter((program) => spawnSync(program, ['--version']).status !== 0);
  return missing.length === 0 ? null : `missing: ${missing.join(', ')}`;
}

/** Creates a repository and serves it. */
export async function startRepository(packages: readonly TestPackage[]): Promise<PackageRepository> {
  const root = mkdtempSync(join(tmpdir(), 'ka-repository-'));
  const directory = join(root, 'www');
  const home = join(root, 'gnupg');
  mkdirSync(home, { mode: 0o700 });
  const gpg = (...args: string[]): string =>
    execFileSync('gpg', ['--homedir', home, '--batch', '--quiet', '--no-tty', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  gpg('--passphrase', '', '--quick-gen-key', 'Packages of a test <test@example.com>', 'ed25519', 'sign', '1y');
  const fingerprint = /^fpr:+([0-9A-F]{40}):/m.exec(gpg('--with-colons', '--list-keys'))?.[1] ?? '';
  const key = join(root, 'key.asc');
  writeFileSync(key, gpg('--armor', '--export', fingerprint));
  const publish = (all: readonly TestPackage[]): void => {
    const deb = join(directory, 'deb');
    rmSync(deb, { recursive: true, force: true });
    mkdirSync(deb, { recursive: true });
    for (const one of all) buildPackage(root, deb, one);
    const index = readdirSync(deb)
      .map((name) => indexEntry(deb, name))
      .join('\n');
    writeFileSync(join(deb, 'Packages'), index);
    const release = `Origin: test\nLabel: test\nDate: ${new Date().toUTCString()}\nSHA256:\n ${sha256(index)} ${Buffer.byteLength(index)} Packages\n`;
    writeFileSync(join(deb, 'Release'), release);
    gpg('--passphrase', '', '--clearsign', '-o', join(deb, 'InRelease'), join(deb, 'Release'));
  };
  publish(packages);
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').replaceAll('..', '');
    asked.push(path);
    try {
      response.end(readFileSync(join(directory, path)));
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    key,
    fingerprint,
    directory,
    asked,
    publish,
    close: async () => {
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
      spawnSync('gpgconf', ['--homedir', home, '--kill', 'all']);
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function buildPackage(root: string, deb: string, { name, version, depends, files }: TestPackage): void {
  const tree = join(root, `${name}-${version}`);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), content, { mode: path.endsWith('.service') ? 0o644 : 0o755 });
  }
  mkdirSync(join(tree, 'DEBIAN'), { recursive: true });
  const fields = [`Package: ${name}`, `Version: ${version}`, 'Architecture: all', 'Maintainer: Test <test@example.com>'];
  if (depends !== undefined) fields.push(`Depends: ${depends}`);
  writeFileSync(join(tree, 'DEBIAN/control'), `${[...fields, 'Description: for a test'].join('\n')}\n`);
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zgzip', '-b', tree, join(deb, `${name}_${version}_all.deb`)], { stdio: 'ignore' });
  rmSync(tree, { recursive: true });
}

function indexEntry(deb: string, name: string): string {
  const bytes = readFileSync(join(deb, name));
  const control = execFileSync('dpkg-deb', ['-f', join(deb, name)], { encoding: 'utf8' }).trim();
  return `${control}\nFilename: ./${name}\nSize: ${bytes.length}\nSHA256: ${sha256(bytes)}\n`;
}

function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
