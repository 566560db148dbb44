// dist/kubeletadm-VERSION.tgz: the built program as an npm package. It contains all its parts and has no
// dependencies.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stage = join(root, 'dist/package');
const { name, version, description, license, keywords, type, engines, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const program = ['dist/kubeletadm.mjs', 'dist/chunks', 'dist/kubeletadm-agent.mjs', 'dist/THIRD-PARTY-NOTICES.txt'];
const content = [...program, 'docs', 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE'];

rmSync(stage, { recursive: true, force: true });
mkdirSync(join(stage, 'dist'), { recursive: true });
for (const path of content) cpSync(join(root, path), join(stage, path), { recursive: true });
const manifest = { name, version, description, license, keywords, type, engines, bin, files: content };
writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
execFileSync('npm', ['pack', '--pack-destination', join(root, 'dist')], { cwd: stage, stdio: ['ignore', 'inherit', 'inherit'] });
rmSync(stage, { recursive: true });
