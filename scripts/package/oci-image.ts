import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzip, type PackagedFile, tarOf } from './archive.ts';

const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
/** The certificates of the package ca-certificates. The bundle of the host can contain others that its owner added. */
const CERTIFICATE_FILES = '/usr/share/ca-certificates/mozilla';
/** The user of distroless images. */
const USER = 65532;

export interface ImageInput {
  readonly version: string;
  readonly license: string;
  readonly description: string;
  /** The path of the executable, for the architecture of this host. */
  readonly executable: string;
  /** Seconds since 1970. */
  readonly mtime: number;
}

/** Why this host cannot build the image; null when it can. */
export function whyNoImage(): string | null {
  if (!existsSync('/var/lib/dpkg/status'))
    return 'the image takes its libraries from Debian packages of the building host: build it on Debian or Ubuntu';
  return existsSync(CERTIFICATE_FILES) ? null : `${CERTIFICATE_FILES} does not exist: install the package ca-certificates`;
}

/**
 * A container image with the executable, the libraries that it needs, and CA certificates: no shell, no package manager.
 * The libraries and certificates are those of the building host, with their licences and, for scanners, the entries of
 * their Debian packages.
 * @returns an OCI archive (`ctr images import`, `podman load`, `skopeo copy oci-archive:`)
 * @see https://github.com/opencontainers/image-spec/blob/main/image-layout.md
 */
export async function ociImage({ version, license, description, executable, mtime }: ImageInput): Promise<Buffer> {
  const libraries = librariesOf(executable);
  const packages = [...new Set([...libraries.map(packageOf), 'ca-certificates'])].sort();
  const base: readonly PackagedFile[] = [
    ...libraries.map((path) => ({ path, mode: 0o755, content: readFileSync(path) })),
    plainFile(CERTIFICATES, readCertificates()),
    ...packages.flatMap((name) => [
      { path: `/var/lib/dpkg/status.d/${name}`, mode: 0o644, content: execFileSync('dpkg-query', ['--status', name]) },
      { path: `/usr/share/doc/${name}/copyright`, mode: 0o644, content: readFileSync(`/usr/share/doc/${name}/copyright`) },
    ]),
    plainFile('/etc/passwd', `root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:${USER}:${USER}:nonroot:/home/nonroot:/sbin/nologin\n`),
    plainFile('/etc/group', `root:x:0:\nnonroot:x:${USER}:\n`),
    plainFile('/etc/nsswitch.conf', 'hosts: files dns\n'),
  ];
  const layers = await Promise.all([
    layerOf(base, mtime, { '/tmp': { mode: 0o1777 }, '/root': { mode: 0o700 }, '/home/nonroot': { mode: 0o700, uid: USER } }),
    layerOf([{ path: '/usr/bin/kubeletadm', mode: 0o755, content: readFileSync(executable) }], mtime),
  ]);
  const labels = {
    'org.opencontainers.image.title': 'kubeletadm',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': license,
    'org.opencontainers.image.description': description,
  };
  const created = new Date(mtime * 1000).toISOString().replace('.000', '');
  const config = jsonBlob({
    created,
    architecture: { x64: 'amd64' }[process.arch as string] ?? process.arch,
    os: 'linux',
    config: {
      User: `${USER}:${USER}`,
      Env: ['PATH=/usr/bin', 'HOME=/home/nonroot', `SSL_CERT_FILE=${CERTIFICATES}`],
      Entrypoint: ['/usr/bin/kubeletadm'],
      Cmd: ['--help'],
      WorkingDir: '/home/nonroot',
      Labels: labels,
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created, created_by: 'npm run package' })),
  });
  const [CONFIG, MANIFEST, LAYER] = ['config.v1+json', 'manifest.v1+json', 'layer.v1.tar+gzip'].map(
    (type) => `application/vnd.oci.image.${type}`,
  );
  const manifest = jsonBlob({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: descriptor(CONFIG, config),
    layers: layers.map(({ blob }) => descriptor(LAYER, blob)),
    annotations: labels,
  });
  const name = { 'io.containerd.image.name': `localhost/kubeletadm:${version}`, 'org.opencontainers.image.ref.name': version };
  const index = { schemaVersion: 2, manifests: [{ ...descriptor(MANIFEST, manifest), annotations: name }] };
  const blobs = [config, manifest, ...layers.map(({ blob }) => blob)];
  return tarOf(
    [
      plainFile('/oci-layout', '{"imageLayoutVersion":"1.0.0"}'),
      plainFile('/index.json', JSON.stringify(index)),
      ...blobs.map((content) => ({ path: `/blobs/sha256/${sha256(content)}`, mode: 0o644, content })),
    ],
    mtime,
  );
}

async function layerOf(...layer: Parameters<typeof tarOf>): Promise<{ readonly diffId: string; readonly blob: Buffer }> {
  const archive = await tarOf(...layer);
  return { diffId: `sha256:${sha256(archive)}`, blob: gzip(archive) };
}

/** The shared libraries of a program and its dynamic loader, by the paths at which it looks for them. */
function librariesOf(program: string): readonly string[] {
  const printed = execFileSync('ldd', [program], { encoding: 'utf8' });
  return [...printed.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path as string);
}

function readCertificates(): string {
  const names = readdirSync(CERTIFICATE_FILES).sort();
  return names.map((name) => `${readFileSync(join(CERTIFICATE_FILES, name), 'utf8').trim()}\n`).join('');
}

/** The installed Debian package that a file belongs to. */
function packageOf(path: string): string {
  // With merged /usr, the package database has one of both names.
  const real = realpathSync(path);
  for (const each of [path, real, real.replace(/^\/usr/, ''), `*/${basename(path)}`]) {
    try {
      return execFileSync('dpkg-query', ['--search', each], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).split(
        ':',
      )[0] as string;
    } catch {
      // The database has the other name.
    }
  }
  throw new Error(`${path} belongs to no Debian package`);
}

function plainFile(path: string, text: string): PackagedFile {
  return { path, mode: 0o644, content: Buffer.from(text) };
}

function jsonBlob(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function descriptor(mediaType: string | undefined, blob: Buffer) {
  return { mediaType, digest: `sha256:${sha256(blob)}`, size: blob.length };
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
