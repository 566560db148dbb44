import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import { ARCHITECTURES, IMAGE_TOOLS } from '../host/bundle/options.ts';
import type { BundleCreateRequest, BundleShowRequest } from './bundle.ts';
import type { CommandOptions, On } from './command.ts';
import { addSections } from './help-layout.ts';
import { addImagesOptions, collect, readOutputOption } from './options.ts';
import { flagChoice, flagList, flagText, kubeadmFlags, readFormat } from './request-parts.ts';

/** `bundle create`, `bundle show`. */
export function defineBundle(bundle: Command, on: On): void {
  const create = addImagesOptions(
    bundle.command('create').description('Write one file with images, packages and executables for hosts without Internet access'),
  )
    .requiredOption('-o, --out <file>', 'file to write')
    .addOption(new Option('--arch <arch>', 'architecture of the hosts (default: that of the local host)').choices(ARCHITECTURES))
    .option('--image <name>', 'additional image, e.g. of the pod network (repeatable)', collect)
    .option('--images-from <path>', 'archive of images (OCI or docker save), or a directory of archives (repeatable)', collect)
    .addOption(
      new Option(
        '--images-with <tool>',
        'program that provides the images missing in the archives; ctr: reads them from containerd on the local host (needs root); skopeo: downloads them from registries',
      ).choices(IMAGE_TOOLS),
    )
    .option('--package <path>', 'package (.deb or .rpm), or a directory of them (repeatable)', collect)
    .option(
      '--file <path>',
      'program or archive to install, such as the kubelet, or a directory of such files; needed if the fleet file contains "install: binaries" (repeatable)',
      collect,
    );
  on(create, createRequest, async (...args) => (await import('./bundle.ts')).runBundleCreate(...args));
  addSections(create, { notes: CREATE_NOTES, examples: CREATE_EXAMPLES });
  const show = bundle
    .command('show')
    .description('Print the contents of a bundle, with sizes')
    .argument('<file>', 'bundle')
    .option('--verify', 'read the whole bundle and compare each entry with its checksum in the manifest')
    .addOption(readOutputOption());
  on(
    show,
    ([file = ''], options): BundleShowRequest => ({ file, verifies: options.verify === true, format: readFormat(options) }),
    async (...args) => (await import('./bundle.ts')).runBundleShow(...args),
  );
  addSections(show, { examples: SHOW_EXAMPLES });
}

function createRequest(_: readonly string[], options: CommandOptions): BundleCreateRequest {
  const tool = flagText(options, 'imagesWith');
  const out = flagText(options, 'out') ?? '';
  if (out === '' || out === '-') throw usageError('a bundle cannot be written to standard output', 'Pass a file: --out bundle.tar');
  return {
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    out,
    architecture: options.arch === undefined ? undefined : flagChoice(options, 'arch', ARCHITECTURES),
    images: flagList(options, 'image'),
    imagesFrom: flagList(options, 'imagesFrom'),
    imagesWith: tool === undefined ? undefined : flagChoice(options, 'imagesWith', IMAGE_TOOLS),
    packages: flagList(options, 'package'),
    files: flagList(options, 'file'),
  };
}

const CREATE_NOTES = `The bundle contains the images of a control plane, as printed by kubeletadm config images list, and the images of --image. Each image must be in an archive (--images-from) or available to the program of --images-with. The same inputs always result in an identical file.`;

const CREATE_EXAMPLES = `  kubeletadm bundle create -o bundle.tar --kubernetes-version v1.36.2 --images-from ./images --file ./bin
  kubeletadm bundle create -o bundle.tar --config init.yaml --images-with skopeo --package ./debs
  sudo kubeletadm bundle create -o bundle.tar --images-with ctr --image docker.io/flannel/flannel:v0.27.4`;

const SHOW_EXAMPLES = `  kubeletadm bundle show bundle.tar
  kubeletadm bundle show bundle.tar --verify -o json`;
