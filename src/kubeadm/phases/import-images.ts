import { AppError } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import type { Architecture } from '../../host/bundle/options.ts';
import type { BundleContents, BundledArchive } from '../../host/bundle/ports.ts';
import { imageImporter, listImages } from '../../host/cri/runtime-commands.ts';
import { defineFact } from '../../host/facts/fact.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { HostChange } from '../../host/plan/change.ts';
import { criSockets, DEFAULT_CRI_SOCKET } from '../../kubelet/facts/cri-socket.ts';
import { parseImages } from './pull-images.ts';

export interface ImportImagesInput {
  readonly bundle: BundleContents;
  readonly role: 'worker' | 'control-plane';
  /** With its scheme; null: detected on the host. */
  readonly criSocket: string | null;
  /** An earlier phase may install the container runtime. */
  readonly installsRuntime: boolean;
}

interface Situation {
  readonly criSocket: string;
  /** The images of the runtime; null: it does not run yet. */
  readonly images: ReadonlySet<string> | null;
}

/** Name of the phase. */
export const IMPORT_IMAGES = 'bundle-images';

/** Uploaded archives, until they are imported. Partial uploads are kept in the same directory, see `UPLOAD_FUNCTIONS`. */
const DIRECTORY = '/var/lib/kubeletadm/uploads';

/** Copies the images of a bundle that the container runtime of the host lacks, and imports them. */
export const importImages = definePhase<ImportImagesInput, Situation>({
  name: IMPORT_IMAGES,
  short: 'Copy and import the images of a bundle',
  observe: observeImages,
  plan: ({ criSocket, images }, { bundle, role }) => {
    const archives = bundle.imagesFor(role);
    const missing = archives.filter((archive) => missingOf(archive, images).length > 0);
    if (missing.length === 0) return { changes: [], noop: 'the images of the bundle exist on the host' };
    return { changes: missing.flatMap((archive) => importChanges(archive, missingOf(archive, images), criSocket)) };
  },
  verify: async (context, input) => {
    const { images } = await observeImages(context, input);
    const left = input.bundle.imagesFor(input.role).flatMap((archive) => missingOf(archive, images));
    if (left.length === 0) return;
    const message = `${IMPORT_IMAGES}: the container runtime does not list ${left.join(', ')} after the import`;
    const hint = 'Check the log of the container runtime: journalctl -u containerd';
    throw new AppError({ host: context.host.name, code: 'BUNDLE_IMPORT_FAILED', message, hint });
  },
});

function missingOf({ images }: BundledArchive, existing: ReadonlySet<string> | null): readonly string[] {
  return images.filter((image) => existing?.has(image) !== true);
}

function importChanges({ images, content }: BundledArchive, missing: readonly string[], criSocket: string): readonly HostChange[] {
  const path = `${DIRECTORY}/${content.sha256}`;
  const reason = `${missing.join(', ')}: not on the host`;
  return [
    { kind: 'upload-file', path, mode: 0o600, owner: 'root:root', content, keep: true, reason },
    { kind: 'import-images', path, images, criSocket, reason: 'not on the host' },
  ];
}

const MACHINES: Readonly<Record<string, Architecture>> = { x86_64: 'amd64', amd64: 'amd64', aarch64: 'arm64', arm64: 'arm64' };

async function observeImages({ host, signal }: PhaseContext, input: ImportImagesInput): Promise<Situation> {
  const { bundle, installsRuntime } = input;
  const machine = defineFact({ machine: { kind: 'command', argv: ['uname', '-m'] } }, (answers) => answers.machine.stdout.trim());
  const [own, sockets] = await Promise.all([observe(host, machine, signal), observe(host, criSockets(input.criSocket), signal)]);
  if (MACHINES[own] !== bundle.architecture) {
    const message = `${IMPORT_IMAGES}: the host has the architecture ${MACHINES[own] ?? own}, but ${bundle.file} is for ${bundle.architecture}`;
    const hint = `Use a bundle for ${MACHINES[own] ?? own}. Apply each bundle only to the hosts of its architecture, with --limit or --group`;
    throw new AppError({ host: host.name, code: 'BUNDLE_WRONG_ARCHITECTURE', message, hint }, { exitCode: 3 });
  }
  const criSocket = input.criSocket ?? sockets[0] ?? DEFAULT_CRI_SOCKET;
  if (!sockets.includes(criSocket)) {
    if (installsRuntime) return { criSocket, images: null };
    const message = `${IMPORT_IMAGES}: no container runtime listens on ${criSocket}`;
    const hint = 'Start the container runtime, or set criSocket of the host';
    throw new AppError({ host: host.name, code: 'CRI', message, hint }, { exitCode: 3 });
  }
  const runtime = defineFact(
    { images: { kind: 'command', argv: listImages(criSocket) }, importer: { kind: 'command', argv: imageImporter(criSocket) } },
    ({ images, importer }) => ({ images: images.exitCode === 0 ? parseImages(images.stdout) : null, importer: importer.stdout.trim() }),
  );
  const { images, importer } = await observe(host, runtime, signal);
  if (importer === '') {
    const message = `${IMPORT_IMAGES}: neither ctr of containerd nor podman can import images for ${criSocket}`;
    const hint = 'Install ctr, which is a part of containerd, or podman for CRI-O';
    throw new AppError({ host: host.name, code: 'BUNDLE_NO_IMPORTER', message, hint }, { exitCode: 3 });
  }
  return { criSocket, images };
}
