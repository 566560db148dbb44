import * as z from 'zod';
import { AppError } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import { ARCHITECTURES } from './options.ts';

/** Name of the manifest in the archive, its first entry. */
export const MANIFEST_NAME = 'manifest.json';

/** The archive starts with the manifest; more entries than these fill no real bundle. */
export const MAX_MANIFEST_BYTES = 16 * 1024 * 1024;

const API_VERSION = 'kubeletadm.dev/v1alpha1';

/** A tar header holds names of up to 100 bytes and sizes of less than 8 GiB without an extension. */
export const MAX_NAME_BYTES = 100;
export const MAX_CONTENT_BYTES = 8 * 1024 ** 3 - 1;

const common = {
  /** Name in the archive: a file in one of three directories, thus neither `.` nor `..`. */
  path: z
    .string()
    .regex(/^(?:images|packages|files)\/(?!\.{1,2}$)[\w.+~-]+$/)
    .max(MAX_NAME_BYTES),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** In bytes. */
  size: z.number().int().min(0).max(MAX_CONTENT_BYTES),
};

const image = z.strictObject({
  type: z.literal('image'),
  ...common,
  /** Names with tags or digests, as `ctr images ls` prints them. */
  images: z
    .array(
      z
        .string()
        .regex(/^[\w][\w.:/@+-]*$/)
        .max(500),
    )
    .min(1),
  /** Hosts that need the images. */
  hosts: z.enum(['all', 'control-planes']),
});

const installable = z.strictObject({
  type: z.literal('package'),
  ...common,
  format: z.enum(['deb', 'rpm']),
  name: z.string().regex(/^[A-Za-z0-9][\w.+-]*$/),
  /** As the package manager prints it, for an rpm with the release: `1.36.2-150500.1.1`. */
  version: z.string().regex(/^[\w.+~:-]+$/),
});

const file = z.strictObject({ type: z.literal('file'), ...common });

const manifest = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal('Bundle'),
  /** With a leading v. */
  kubernetesVersion: z.string().regex(/^v[\w.+-]+$/),
  architecture: z.enum(ARCHITECTURES),
  /** In the order of the archive. */
  contents: z.array(z.discriminatedUnion('type', [image, installable, file])),
});

export type BundledImages = Readonly<z.output<typeof image>>;
export type BundledPackage = Readonly<z.output<typeof installable>>;
export type BundleContent = BundledImages | BundledPackage | Readonly<z.output<typeof file>>;

export type BundleManifest = Omit<z.output<typeof manifest>, 'contents'> & { readonly contents: readonly BundleContent[] };

/** A manifest with the contents in the order of the archive: by path. */
export function bundleManifest(about: Pick<BundleManifest, 'kubernetesVersion' | 'architecture' | 'contents'>): BundleManifest {
  const { kubernetesVersion, architecture } = about;
  const contents = [...about.contents].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  return { apiVersion: API_VERSION, kind: 'Bundle', kubernetesVersion, architecture, contents };
}

export function encodeManifest(value: BundleManifest): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** @param file its name in messages. @throws AppError BUNDLE_INVALID (exit code 2) */
export function decodeManifest(text: string, file: string): BundleManifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidBundle(file, 'its manifest is not JSON');
  }
  const read = manifest.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw invalidBundle(file, `its manifest is invalid at ${printable(issue?.path.join('.') || 'the top', 100)}: ${issue?.message ?? ''}`);
  }
  const paths = read.data.contents.map(({ path }) => path);
  if (new Set(paths).size < paths.length) throw invalidBundle(file, 'its manifest lists a path twice');
  return read.data;
}

const BLOCK = 512;

/** Where a content begins in the archive, in bytes: each entry has a header of one block and is padded to blocks. */
export function contentOffsets(
  manifestBytes: number,
  contents: readonly Pick<BundleContent, 'path' | 'size'>[],
): ReadonlyMap<string, number> {
  const offsets = new Map<string, number>();
  let at = BLOCK + padded(manifestBytes);
  for (const { path, size } of contents) {
    offsets.set(path, at + BLOCK);
    at += BLOCK + padded(size);
  }
  return offsets;
}

function padded(bytes: number): number {
  return Math.ceil(bytes / BLOCK) * BLOCK;
}

export function invalidBundle(file: string, why: string): AppError {
  const hint = 'Copy the bundle again, or create it again with kubeletadm bundle create';
  return new AppError({ code: 'BUNDLE_INVALID', message: `${file} is not a usable bundle: ${why}`, hint }, { exitCode: 2 });
}
