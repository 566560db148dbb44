import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

interface ArchiveOptions {
  readonly images: readonly string[];
  readonly architecture?: string;
  /** False: the archive has only the tags of its images, as of a layout without containerd's names. Default: true. */
  readonly isNamed?: boolean;
  /** Content of the layer. */
  readonly layer?: string | Buffer;
}

const config = (architecture: string): string => JSON.stringify({ architecture, os: 'linux', rootfs: { type: 'layers', diff_ids: [] } });

/** An archive as `docker save` and `skopeo copy docker-archive:` write it. The layer need not be one. */
export async function writeDockerArchive(
  file: string,
  { images, architecture = 'amd64', layer = images.join() }: ArchiveOptions,
): Promise<void> {
  const archive = pack();
  archive.entry({ name: 'layer.tar' }, layer);
  archive.entry({ name: 'config.json' }, config(architecture));
  archive.entry({ name: 'manifest.json' }, JSON.stringify([{ Config: 'config.json', RepoTags: images, Layers: ['layer.tar'] }]));
  archive.finalize();
  writeFileSync(file, await buffer(archive));
}

/** An OCI layout as `ctr images export` writes it, compressed. */
export async function writeOciArchive(file: string, { images, architecture = 'amd64', isNamed = true }: ArchiveOptions): Promise<void> {
  const text = config(architecture);
  const digest = createHash('sha256').update(text).digest('hex');
  const archive = pack();
  archive.entry({ name: `blobs/sha256/${digest}` }, text);
  const manifests = images.map((image) => ({
    digest: `sha256:${digest}`,
    annotations: {
      ...(isNamed ? { 'io.containerd.image.name': image } : {}),
      'org.opencontainers.image.ref.name': image.replace(/^.*:/, ''),
    },
  }));
  archive.entry({ name: 'index.json' }, JSON.stringify({ schemaVersion: 2, manifests }));
  archive.entry({ name: 'oci-layout' }, '{"imageLayoutVersion":"1.0.0"}');
  archive.finalize();
  writeFileSync(file, gzipSync(await buffer(archive)));
}
