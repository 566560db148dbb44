// npm run package: builds the artefacts of a release into dist/, see npm run package -- --help.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, Option } from 'commander';
import { debOf } from './deb.ts';
import { krewArchive, krewManifest } from './krew.ts';
import { EMBEDDED_NODE, nodeBinary } from './node-binaries.ts';
import { ociImage, whyNoImage } from './oci-image.ts';
import { rpmOf } from './rpm.ts';
import { sbomOf } from './sbom.ts';
import { type Architecture, PACKAGE_TEXTS, systemFiles } from './system-package.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const ARCHITECTURES = ['x64', 'arm64'] as const;
const KINDS = ['npm', 'sea', 'deb', 'rpm', 'image', 'sbom', 'krew'];
interface PackageOptions {
  readonly arch: readonly Architecture[];
  readonly check: boolean;
  readonly only: readonly string[];
  readonly out: string;
  readonly releaseUrl?: string;
}
const command = new Command('npm run package --')
  .description('Build the artefacts of a release')
  .addOption(new Option('--arch <arch...>', 'architectures').choices(ARCHITECTURES).default([...ARCHITECTURES]))
  .addOption(new Option('--only <kind...>', 'only these kinds of artefacts').choices(KINDS).default([], 'all'))
  .option('--release-url <url>', 'address under which the archives will be published, for the manifest of --only krew')
  .option('--out <dir>', 'directory of the artefacts', join(root, 'dist'))
  .option('--check', 'build twice, and fail if any byte differs', false)
  .addHelpText('after', '\nSOURCE_DATE_EPOCH is the time in the artefacts; default: the time of the last commit.')
  .allowExcessArguments(false)
  .parse();
const options = command.opts<PackageOptions>();
const out = resolve(options.out);
const SUMS = join(out, 'SHA256SUMS');
const builds = (...kinds: readonly string[]): boolean => options.only.length === 0 || kinds.some((kind) => options.only.includes(kind));
const { releaseUrl } = options;
if (releaseUrl !== undefined && !URL.canParse(releaseUrl)) command.error(`error: --release-url ${releaseUrl}: not a URL`);
if (options.only.includes('krew') && releaseUrl === undefined)
  command.error('error: --only krew requires --release-url URL, the address under which the archives will be published');
const architectures = options.arch;
const { name, version, license, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Readonly<
  Record<'name' | 'version' | 'license' | 'description', string>
>;
const mtime = Number(process.env.SOURCE_DATE_EPOCH ?? execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }));
if (!Number.isSafeInteger(mtime) || mtime <= 0) throw new Error('SOURCE_DATE_EPOCH must be a number of seconds since 1970');

const first = await buildAll();
if (options.check) {
  // Settings of a host that must not change the artefacts.
  process.umask(0o077);
  process.env.TZ = 'Pacific/Chatham';
  const second = await buildAll();
  const differing = first.filter((line) => !second.includes(line)).map((line) => line.split('  ')[1]);
  if (differing.length > 0 || first.length !== second.length) throw new Error(`the second build differs: ${differing.join(', ')}`);
  console.log(`reproducible: two builds gave the same ${first.length} files`);
}

/** @returns the lines of SHA256SUMS */
async function buildAll(): Promise<readonly string[]> {
  const made: string[] = [];
  const startedAt = Date.now();
  const done = (file: string): void => {
    made.push(file);
    const megabytes = (statSync(join(out, file)).size / 1e6).toFixed(1);
    console.log(`${file} ${megabytes} MB, after ${Math.round((Date.now() - startedAt) / 1000)} s`);
  };
  const put = (file: string, content: Buffer | string, mode = 0o644): void => {
    writeFileSync(join(out, `${file}.new`), content);
    chmodSync(join(out, `${file}.new`), mode);
    renameSync(join(out, `${file}.new`), join(out, file));
    done(file);
  };
  mkdirSync(out, { recursive: true });
  rmSync(SUMS, { force: true });
  console.log(`building ${options.only.join(', ') || 'all artefacts'} into ${relative(process.cwd(), out) || '.'}`);
  runScript(process.execPath, 'scripts/build.mjs');
  if (builds('npm')) {
    runScript(process.execPath, 'scripts/build-package.mjs', '--out', out);
    done(`${name}-${version}.tgz`);
  }
  const { executables, nodeVersion } = builds('sea', 'deb', 'rpm', 'image', 'krew')
    ? buildExecutables(done)
    : { executables: new Map<Architecture, string>(), nodeVersion: EMBEDDED_NODE.version };
  const filesOf = builds('deb', 'rpm') ? await systemFiles(root, version) : () => [];
  for (const [arch, file] of executables) {
    const program = { path: '/usr/bin/kubeletadm', mode: 0o755, content: readFileSync(join(out, file)) };
    const common = { ...PACKAGE_TEXTS, name, version, license, arch, mtime };
    for (const { name: packageName, content } of [
      ...(builds('deb') ? [await debOf({ ...common, files: [program, ...filesOf('deb')] })] : []),
      ...(builds('rpm') ? [rpmOf({ ...common, files: [program, ...filesOf('rpm')] })] : []),
    ])
      put(packageName, content);
  }
  if (releaseUrl !== undefined && builds('krew')) {
    const licenseText = readFileSync(join(root, 'LICENSE'));
    const archives = [];
    for (const [arch, file] of executables) {
      const executable = readFileSync(join(out, file));
      const archive = await krewArchive({ version, arch, executable, license: licenseText, mtime });
      put(archive.name, archive.content);
      archives.push({ arch, ...archive });
    }
    put('kubeletadm.krew.yaml', krewManifest(archives, { version, releaseUrl }));
  }
  if (builds('image')) {
    const own = executables.get(process.arch as Architecture);
    const whyNot = own === undefined ? `no executable for ${process.arch} was built` : whyNoImage();
    if (own === undefined || whyNot !== null) console.log(`skipped: container image: ${whyNot}`);
    else
      put(
        `${name}-${version}-image-${process.arch}.tar`,
        await ociImage({ version, license, description, executable: join(out, own), mtime }),
      );
  }
  if (builds('sbom')) put(`${name}-${version}.cdx.json`, sbomOf(root, nodeVersion, mtime));

  const lines = made.sort().map((file) => {
    const content = readFileSync(join(out, file));
    return `${createHash('sha256').update(content).digest('hex')}  ${file}`;
  });
  writeFileSync(SUMS, `${lines.join('\n')}\n`);
  console.log(`SHA256SUMS in ${relative(process.cwd(), out) || '.'}`);
  return lines;
}

/**
 * All with the same Node.js: code that another version prepared would not run. Where its binaries cannot be downloaded, only
 * this host's architecture is built, with the Node.js of this process.
 */
function buildExecutables(done: (file: string) => void): {
  readonly executables: ReadonlyMap<Architecture, string>;
  readonly nodeVersion: string;
} {
  const cache = join(root, 'node_modules/.cache/kubeletadm');
  const host = nodeBinary(process.arch as Architecture, cache);
  const builder = 'path' in host ? host.path : process.execPath;
  const nodeVersion = 'path' in host ? EMBEDDED_NODE.version : process.versions.node;
  if ('missing' in host) console.log(`executables contain Node.js ${nodeVersion} of this host: ${host.missing}`);
  const executables = new Map<Architecture, string>();
  for (const arch of architectures) {
    const isHost = arch === process.arch;
    const binary = isHost ? { path: builder } : 'missing' in host ? host : nodeBinary(arch, cache);
    if ('missing' in binary) {
      console.log(`skipped: executable, .deb and .rpm for ${arch}: ${binary.missing}`);
      continue;
    }
    runScript(builder, 'scripts/build-sea.mjs', '--out', out, ...(isHost ? [] : ['--node', binary.path]));
    executables.set(arch, `kubeletadm-linux-${arch}`);
    done(`kubeletadm-linux-${arch}`);
  }
  return { executables, nodeVersion };
}

function runScript(node: string, ...words: readonly string[]): void {
  execFileSync(node, words, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
}
