import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { extract } from 'tar-stream';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { krewArchive, krewManifest } from '../../scripts/package/krew.ts';

async function listed(content: Buffer): Promise<Readonly<Record<string, string>>> {
  const files: Record<string, string> = {};
  const reader = extract();
  reader.end(gunzipSync(content));
  for await (const entry of reader) {
    if (entry.header.type === 'file') files[entry.header.name] = (entry.header.mode ?? 0).toString(8);
    entry.resume();
  }
  return files;
}

it('the manifest of krew has the address and the SHA-256 of each archive, which has the executable and the license', async () => {
  const from = { version: '1.2.3', executable: Buffer.from('program'), license: Buffer.from('license'), mtime: 1_700_000_000 };
  const archives = await Promise.all(
    (['x64', 'arm64'] as const).map(async (arch) => ({ arch, ...(await krewArchive({ ...from, arch })) })),
  );
  for (const { content } of archives) expect(await listed(content)).toEqual({ './LICENSE': '644', './kubeletadm': '755' });
  const { spec, ...manifest } = parse(
    krewManifest(archives, { version: '1.2.3', releaseUrl: 'https://github.com/owner/name/releases/download/v1.2.3/' }),
  );
  expect(manifest).toMatchObject({ kind: 'Plugin', metadata: { name: 'kubeletadm' } });
  expect(spec).toMatchObject({ version: 'v1.2.3', homepage: 'https://github.com/owner/name' });
  expect(spec.platforms).toEqual(
    archives.map(({ arch, name, content }) => ({
      selector: { matchLabels: { os: 'linux', arch: arch === 'x64' ? 'amd64' : 'arm64' } },
      uri: `https://github.com/owner/name/releases/download/v1.2.3/${name}`,
      sha256: createHash('sha256').update(content).digest('hex'),
      files: [
        { from: 'kubeletadm', to: '.' },
        { from: 'LICENSE', to: '.' },
      ],
      bin: 'kubeletadm',
    })),
  );
});
