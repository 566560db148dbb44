import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, rmSync } from 'node:fs';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { type Extract, extract, type Header, type Pack, pack } from 'tar-stream';
import { syncPath } from '../../base/adapters/sync-path.ts';
import { AppError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../base/json.ts';
import { systemErrorText } from '../../base/system-error.ts';
import { printable } from '../../base/text/printable.ts';
import {
  type BundleManifest,
  contentOffsets,
  decodeManifest,
  encodeManifest,
  invalidBundle,
  MANIFEST_NAME,
  MAX_MANIFEST_BYTES,
} from '../bundle/manifest.ts';
import type { BundleFiles, BundleSource, ImageArchive, InspectedFile, OpenBundle } from '../bundle/ports.ts';
import { fullImageName } from '../cri/runtime-commands.ts';

/**
 * Bundles on the file system of the local host. An aborted signal ends each function with the signal's reason.
 * @param interruption.onForcedExit calls a listener before the process exits without waiting; returns a function that
 *   removes the listener
 */
export function bundleFiles(interruption: {
  readonly signal: AbortSignal;
  readonly onForcedExit?: ((listener: () => void) => () => void) | undefined;
}): BundleFiles {
  const { signal } = interruption;
  // The reason replaces the errors of streams that the signal destroyed.
  const orInterrupted = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  };
  return {
    listInputs,
    inspectFile: (file) => orInterrupted(inspectFile(file, signal)),
    inspectImageArchive: (file) => orInterrupted(inspectImageArchive(file, signal)),
    write: (...bundle) => orInterrupted(writeBundle(bundle, interruption)),
    open: (file) => openBundle(file, (bundle) => orInterrupted(verifyBundle(file, bundle, signal))),
  };
}

async function listInputs(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const entries = await readdir(path, { withFileTypes: true });
    const names = entries.filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name);
    return names.sort().map((name) => join(path, name));
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

async function inspectFile(file: string, signal: AbortSignal): Promise<InspectedFile> {
  const hash = createHash('sha256');
  let size = 0;
  try {
    for await (const chunk of createReadStream(file, { signal }) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      size += chunk.length;
    }
  } catch (cause) {
    throw unreadable(file, cause);
  }
  return { file, sha256: hash.digest('hex'), size };
}

/** Limits for the documents of an image archive, which are kept in memory; layers are larger or no JSON. */
const MAX_DOCUMENT_BYTES = 512 * 1024;
const MAX_DOCUMENTS_BYTES = 16 * 1024 * 1024;

/** Reads the archive once: its hash, and the documents that name its images. */
async function inspectImageArchive(file: string, signal: AbortSignal): Promise<ImageArchive | null> {
  const tap = hashing();
  const documents = new Map<string, JsonObject | readonly unknown[]>();
  let kept = 0;
  const archive = extract();
  archive.on('entry', (header, stream, next) => {
    stream.on('error', () => undefined);
    const wanted = header.type === 'file' && (header.size ?? 0) <= MAX_DOCUMENT_BYTES && kept + (header.size ?? 0) <= MAX_DOCUMENTS_BYTES;
    if (!wanted) {
      stream.on('end', next);
      stream.resume();
      return;
    }
    const chunks: Buffer[] = [];
    stream.on('data', (chunk) => chunks.push(chunk as Buffer));
    stream.on('end', () => {
      const document = parseDocument(Buffer.concat(chunks));
      if (document !== null) {
        kept += header.size ?? 0;
        documents.set(header.name.replace(/^\.\//, ''), document);
      }
      next();
    });
  });
  const isTar = await readThrough(file, { tap: tap.stream, archive, signal });
  const images = namesOf(documents);
  return isTar && images.length > 0 ? { file, ...tap.result(), images, architectures: architecturesOf(documents) } : null;
}

/** Passes a file through the hash and, decompressed if necessary, into the archive reader. False: not a tar archive. */
async function readThrough(
  file: string,
  { tap, archive, signal }: { readonly tap: Transform; readonly archive: Extract; readonly signal: AbortSignal },
): Promise<boolean> {
  const head = await readRange(file, 0, 2);
  const isCompressed = head[0] === 0x1f && head[1] === 0x8b;
  const source = createReadStream(file);
  let failure: unknown = null;
  source.on('error', (error) => {
    if (isReadError(error)) failure ??= error;
  });
  try {
    await (isCompressed ? pipeline(source, tap, createGunzip(), archive, { signal }) : pipeline(source, tap, archive, { signal }));
    return true;
  } catch {
    signal.throwIfAborted();
    if (failure !== null) throw unreadable(file, failure);
    return false;
  }
}

/** Whether reading the file failed. Node.js 22 and later also pass the failure of a later stream of a pipeline to its source. */
function isReadError(error: Error): boolean {
  return 'syscall' in error;
}

function parseDocument(bytes: Buffer): JsonObject | readonly unknown[] | null {
  if (bytes[0] !== 0x7b && bytes[0] !== 0x5b) return null;
  const value = parseJson(bytes.toString('utf8'));
  return Array.isArray(value) ? value : isJsonObject(value) ? value : null;
}

/** @see github.com/opencontainers/image-spec annotations.md, containerd; `docker save` writes manifest.json */
function namesOf(documents: ReadonlyMap<string, JsonObject | readonly unknown[]>): readonly string[] {
  const index = documents.get('index.json');
  const saved = documents.get('manifest.json');
  const manifests = isJsonObject(index) && Array.isArray(index.manifests) ? index.manifests.filter(isJsonObject) : [];
  const named = manifests.flatMap(({ annotations }) => {
    if (!isJsonObject(annotations)) return [];
    return [annotations['io.containerd.image.name'] ?? annotations['org.opencontainers.image.ref.name']];
  });
  const tags = (Array.isArray(saved) ? saved : []).flatMap((each: unknown) =>
    isJsonObject(each) && Array.isArray(each.RepoTags) ? each.RepoTags : [],
  );
  const isName = (name: unknown): name is string => typeof name === 'string' && /^\w[\w./:@+-]*$/.test(name);
  // An annotation may be a tag alone, which does not name an image; `docker save` writes names.
  const names = [...named.filter((name) => /[:/]/.test(String(name))), ...tags].filter(isName);
  return [...new Set(names.map(fullImageName))].sort();
}

/** The configuration of an image has its architecture and the list of its layers. */
function architecturesOf(documents: ReadonlyMap<string, JsonObject | readonly unknown[]>): readonly string[] {
  const found = [...documents.values()].flatMap((document) =>
    isJsonObject(document) && isJsonObject(document.rootfs) && typeof document.architecture === 'string' ? [document.architecture] : [],
  );
  return [...new Set(found)].sort();
}

/** A stream that hashes and counts the bytes that pass. */
function hashing(): { readonly stream: Transform; result(): { readonly sha256: string; readonly size: number } } {
  const hash = createHash('sha256');
  let size = 0;
  const stream = new Transform({
    transform(chunk: Buffer, _, done) {
      hash.update(chunk);
      size += chunk.length;
      done(null, chunk);
    },
  });
  return { stream, result: () => ({ sha256: hash.digest('hex'), size }) };
}

async function writeBundle(
  [file, manifest, sources]: Parameters<BundleFiles['write']>,
  { signal, onForcedExit }: Parameters<typeof bundleFiles>[0],
): Promise<number> {
  const temporary = join(dirname(file), `.${basename(file)}.kubeletadm.${randomBytes(8).toString('hex')}`);
  const forget = onForcedExit?.(() => rmSync(temporary, { force: true }));
  const archive = pack();
  const output = createWriteStream(temporary, { flags: 'wx', mode: 0o644 });
  const adding = addEntries(archive, encodeManifest(manifest), sources, signal).catch((error: unknown) => {
    archive.destroy(error as Error);
    throw error;
  });
  try {
    const [, added] = await Promise.allSettled([pipeline(archive, output, { signal }), adding]);
    if (added.status === 'rejected') throw added.reason;
    await syncPath(temporary, 'r+');
    const { size } = await stat(temporary);
    if (!isComplete(manifest, contentOffsets(Buffer.byteLength(encodeManifest(manifest)), manifest.contents), size))
      throw new Error('the disk is full');
    await rename(temporary, file);
    await syncPath(dirname(file), 'r');
    return size;
  } catch (cause) {
    // An open that has not finished would create the file after its removal.
    if (!output.closed) await new Promise<void>((done) => output.once('close', () => done()));
    await rm(temporary, { force: true });
    if (cause instanceof AppError) throw cause;
    const message = `cannot write ${file}: ${systemErrorText(cause)}`;
    throw new AppError({ code: 'INPUT_UNWRITABLE', message, hint: 'Check the path and the free disk space' }, { exitCode: 2, cause });
  } finally {
    forget?.();
  }
}

function isComplete({ contents }: BundleManifest, offsets: ReadonlyMap<string, number>, size: number): boolean {
  const last = contents.at(-1);
  return last === undefined || (offsets.get(last.path) ?? 0) + last.size <= size;
}

async function addEntries(archive: Pack, text: string, sources: readonly BundleSource[], signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    archive.entry(header(MANIFEST_NAME, Buffer.byteLength(text)), text, (error) => (error ? reject(error) : resolve()));
  });
  for (const source of sources) await addFile(archive, source, signal);
  archive.finalize();
}

async function addFile(archive: Pack, { content, file }: BundleSource, signal: AbortSignal): Promise<void> {
  const { path, size, sha256 } = content;
  const tap = hashing();
  const source = createReadStream(file);
  let failure: unknown = null;
  source.on('error', (error) => {
    failure = error;
  });
  try {
    await pipeline(source, tap.stream, archive.entry(header(path, size)) as unknown as NodeJS.WritableStream, { signal });
  } catch (cause) {
    signal.throwIfAborted();
    if (failure !== null) throw unreadable(file, failure);
    // tar-stream refuses an entry with another size than its header's.
    throw (await stat(file)).size === size ? cause : changed(file);
  }
  if (tap.result().sha256 !== sha256) throw changed(file);
}

/** Equal for equal contents: without times and owners. */
function header(name: string, size: number): Partial<Header> & Pick<Header, 'name'> {
  return { name, size, mode: 0o644, uid: 0, gid: 0, uname: '', gname: '', mtime: new Date(0), type: 'file' };
}

function changed(file: string): AppError {
  const message = `${file} changed while the bundle was written`;
  return new AppError({ code: 'BUNDLE_INPUT', message, hint: 'Rerun the command when the file is complete' }, { exitCode: 2 });
}

async function openBundle(file: string, verify: (manifest: BundleManifest) => Promise<void>): Promise<OpenBundle> {
  const manifestText = await readManifest(file);
  const manifest = decodeManifest(manifestText, file);
  const offsets = contentOffsets(Buffer.byteLength(manifestText), manifest.contents);
  const { size } = await stat(file);
  if (!isComplete(manifest, offsets, size)) throw invalidBundle(file, 'it is incomplete');
  for (const { path } of manifest.contents) {
    const name = (await readRange(file, (offsets.get(path) ?? 0) - 512, 100)).toString('latin1').replace(/\0.*$/s, '');
    if (name !== path) throw invalidBundle(file, `${path} is not at the place of its manifest; another program wrote the archive`);
  }
  return {
    file,
    size,
    manifest,
    contentOf: ({ path, sha256, size }) => {
      const start = offsets.get(path) ?? 0;
      return { sha256, size, read: (offset, length) => readRange(file, start + offset, Math.min(length, size - offset)) };
    },
    verify: () => verify(manifest),
  };
}

async function readRange(path: string, position: number, length: number): Promise<Buffer> {
  try {
    const file = await open(path);
    try {
      const buffer = Buffer.alloc(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      return buffer.subarray(0, filled);
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** The first entry of the archive. */
async function readManifest(file: string): Promise<string> {
  // No other program writes a header with an extension for such a short name, so the content follows the first block.
  const archive = extract();
  archive.on('error', () => undefined);
  archive.end(await readRange(file, 0, 512 + MAX_MANIFEST_BYTES));
  try {
    for await (const { header } of archive) {
      const { name, size = 0 } = header;
      if (name !== MANIFEST_NAME) break;
      if (size > MAX_MANIFEST_BYTES) throw invalidBundle(file, 'its manifest is too large');
      return (await readRange(file, 512, size)).toString('utf8');
    }
  } catch (error) {
    if (error instanceof AppError) throw error;
  } finally {
    archive.destroy();
  }
  throw invalidBundle(file, 'the file was not created by kubeletadm bundle create, or it is damaged');
}

async function verifyBundle(file: string, { contents }: BundleManifest, signal: AbortSignal): Promise<void> {
  const archive = extract();
  const source = createReadStream(file);
  const expected = [{ path: MANIFEST_NAME, sha256: null }, ...contents].values();
  let failure: unknown = null;
  source.on('error', (error) => {
    if (isReadError(error)) failure ??= unreadable(file, error);
  });
  const reading = pipeline(source, archive, { signal }).catch((error: unknown) => {
    failure ??= error instanceof AppError ? error : invalidBundle(file, 'it is damaged or incomplete');
  });
  try {
    for await (const entry of archive) {
      // Each entry once: tar(1) would extract a second manifest over the first.
      const next = expected.next().value;
      if (next?.path !== entry.header.name)
        throw invalidBundle(file, `the entry ${printable(entry.header.name, 100)} is not the next one of its manifest`);
      const hash = createHash('sha256');
      for await (const chunk of entry as AsyncIterable<Buffer>) hash.update(chunk);
      if (next.sha256 !== null && hash.digest('hex') !== next.sha256)
        throw invalidBundle(file, `the SHA-256 of ${next.path} differs from its manifest`);
    }
  } catch (error) {
    failure ??= error instanceof AppError ? error : invalidBundle(file, 'it is damaged or incomplete');
    archive.destroy();
  }
  await reading;
  if (failure !== null) throw failure;
  const missing = expected.next();
  if (missing.done !== true) throw invalidBundle(file, `${missing.value.path} is missing`);
}

function unreadable(path: string, cause: unknown): AppError {
  if (cause instanceof AppError) return cause;
  const message = `cannot read ${path}: ${systemErrorText(cause)}`;
  return new AppError({ code: 'INPUT_UNREADABLE', message, hint: 'Check the path' }, { exitCode: 2, cause });
}
