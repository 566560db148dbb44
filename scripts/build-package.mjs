// dist/kubeletadm-VERSION.tgz: the built program as an npm package. It contains all its parts and has no
// dependencies. `--out DIR` writes the package into another directory.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({ options: { out: { type: 'string', default: join(root, 'dist') } } });
const stage = join(values.out, 'package');
const { name, version, description, license, keywords, type, engines, bin, publishConfig } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);
const program = ['dist/kubeletadm.mjs', 'dist/chunks', 'dist/kubeletadm-agent.mjs', 'dist/THIRD-PARTY-NOTICES.txt'];
const content = [...program, 'docs', 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE'];

rmSync(stage, { recursive: true, force: true });
mkdirSync(join(stage, 'dist'), { recursive: true });
for (const path of content) cpSync(join(root, path), join(stage, path), { recursive: true });
// The sources do not name the repository that publishes them: in its workflow the variables do, and npm compares them.
const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
const origin = server && repository ? { repository: { type: 'git', url: `git+${server}/${repository}.git` } } : {};
const manifest = { name, version, description, license, keywords, type, engines, bin, files: content, publishConfig, ...origin };
writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
// npm pack takes over the modes of files, which depend on the umask of the clone.
for (const entry of readdirSync(stage, { recursive: true, withFileTypes: true })) {
  const isProgram = entry.isDirectory() || (program.includes(`dist/${entry.name}`) && entry.name.endsWith('.mjs'));
  chmodSync(join(entry.parentPath, entry.name), isProgram ? 0o755 : 0o644);
}
execFileSync('npm', ['pack', '--silent', '--pack-destination', values.out], { cwd: stage, stdio: ['ignore', 'inherit', 'inherit'] });
rmSync(stage, { recursive: true });
