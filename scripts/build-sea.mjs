// Builds dist/kubeletadm-linux-ARCH: one executable with embedded Node.js, for hosts without Node.js.
//
//   npm run build:sea                          with the Node.js that runs this script
//   npm run build:sea -- --node FILE           with another binary of the same version, e.g. for another architecture
//   npm run build:sea -- --out DIR             into another directory
//
// @see https://nodejs.org/docs/latest-v20.x/api/single-executable-applications.html
import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { addNote, machineOf } from './elf-note.mjs';
import { RULE, section } from './third-party-notices.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values: options } = parseArgs({ options: { node: { type: 'string' }, out: { type: 'string' } } });
const { node = process.execPath, out = join(root, 'dist') } = options;
const work = join(out, 'sea');
rmSync(work, { recursive: true, force: true });
mkdirSync(work, { recursive: true });
execFileSync(process.execPath, [join(root, 'scripts/build.mjs'), '--sea', work], { stdio: 'inherit' });

const blob = join(work, 'blob');
const notices = join(work, 'notices');
appendFileSync(notices, RULE + section(`Node.js ${process.version} (MIT, and the licences of its parts)`, nodeLicense()));
// Compiled code saves two thirds of the startup time, but only the same Node.js that compiled it can use it.
const useCodeCache = node === process.execPath;
const config = { main: join(work, 'main.cjs'), output: blob, disableExperimentalSEAWarning: true, assets: { notices }, useCodeCache };
writeFileSync(join(work, 'config.json'), JSON.stringify(config));
// A fixed seed: the compiled code contains hash tables, and equal sources give equal bytes. V8 accepts code of another random
// seed, but none of another hash seed.
execFileSync(process.execPath, ['--random-seed=1', '--experimental-sea-config', join(work, 'config.json')], {
  stdio: ['ignore', 'ignore', 'pipe'],
});

const program = readFileSync(node);
const machine = machineOf(program);
if (machine === null) throw new Error(`${node} is not a 64-bit Linux executable`);
const fuse = Buffer.from('NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:0');
const fuseAt = program.indexOf(fuse);
if (fuseAt < 0 || program.indexOf(fuse, fuseAt + 1) >= 0)
  throw new Error(`${node} cannot embed a program: it was built without support for single executables, or already contains one`);
program.write(':1', fuseAt + fuse.length - 2, 'latin1');
const file = join(out, `kubeletadm-linux-${machine}`);
const made = addNote(program, 'NODE_SEA_BLOB', readFileSync(blob));
writeFileSync(file, made);
chmodSync(file, 0o755);
rmSync(work, { recursive: true, force: true });
console.log(`${relative(root, file)} ${(made.length / 1e6).toFixed(1)} MB`);

/**
 * The licence of the embedded Node.js: next to its `bin`, or in the documentation directory of distributions.
 */
function nodeLicense() {
  const prefix = join(dirname(realpathSync(node)), '..');
  const file = [join(prefix, 'LICENSE'), join(prefix, 'share/doc/nodejs/LICENSE'), '/usr/share/doc/nodejs/LICENSE'].find((path) =>
    existsSync(path),
  );
  if (file !== undefined) return readFileSync(file, 'utf8').trim();
  console.error(`no LICENSE of Node.js found near ${node}: the executable contains its URL instead`);
  return `https://github.com/nodejs/node/blob/${process.version}/LICENSE`;
}
