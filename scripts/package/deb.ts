import { createHash } from 'node:crypto';
import { gzip, type PackagedFile, tarOf } from './archive.ts';
import type { SystemPackage } from './system-package.ts';

/** Debian's names of architectures. */
const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' } as const;

/** @returns name and content of a Debian package. @see deb(5), deb-control(5) */
export async function debOf(from: SystemPackage): Promise<{ readonly name: string; readonly content: Buffer }> {
  const { name, version, arch, mtime, files, summary, description, maintainer } = from;
  const architecture = ARCHITECTURES[arch];
  const regular = files.filter((file) => 'content' in file);
  const control = `Package: ${name}
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${Math.ceil(regular.reduce((sum, { content }) => sum + Math.ceil(content.length / 1024), 0))}
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 8)
Suggests: openssh-client
Section: admin
Priority: optional
Description: ${summary}
${description
  .trim()
  .split('\n')
  .map((line) => (line === '' ? ' .' : ` ${line}`))
  .join('\n')}
`;
  const sums = regular.map(({ path, content }) => `${createHash('md5').update(content).digest('hex')}  ${path.slice(1)}\n`).join('');
  const plain = (path: string, text: string): PackagedFile => ({ path, mode: 0o644, content: Buffer.from(text) });
  const members: readonly (readonly [string, Buffer])[] = [
    ['debian-binary', Buffer.from('2.0\n')],
    ['control.tar.gz', gzip(await tarOf([plain('/control', control), plain('/md5sums', sums)], mtime))],
    ['data.tar.gz', gzip(await tarOf(files, mtime))],
  ];
  return { name: `${name}_${version}_${architecture}.deb`, content: arOf(members, mtime) };
}

/** @see ar(5) */
function arOf(members: readonly (readonly [string, Buffer])[], mtime: number): Buffer {
  const parts = members.flatMap(([name, content]) => {
    const fields = [
      name.padEnd(16),
      String(mtime).padEnd(12),
      '0'.padEnd(6),
      '0'.padEnd(6),
      '100644'.padEnd(8),
      String(content.length).padEnd(10),
    ];
    return [Buffer.from(`${fields.join('')}\`\n`, 'latin1'), content, Buffer.alloc(content.length % 2, '\n')];
  });
  return Buffer.concat([Buffer.from('!<arch>\n'), ...parts]);
}
