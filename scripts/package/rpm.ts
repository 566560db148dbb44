// Writes RPM packages. rpmbuild is not on every host, builds only for the architecture of the host by default, and its
// versions write different bytes. No maintained npm package writes the format itself.
// @see https://rpm-software-management.github.io/rpm/manual/format_v4.html
import { createHash } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { compare, gzip, type PackagedFile } from './archive.ts';
import type { SystemPackage } from './system-package.ts';

const ARCHITECTURES = { x64: { name: 'x86_64', number: 1 }, arm64: { name: 'aarch64', number: 19 } } as const;
const [FILE_TYPE, REGULAR_FILE, SYMBOLIC_LINK, DIRECTORY] = [0o170000, 0o100000, 0o120000, 0o040000];
/** File attribute: documentation. */
const DOC = 2;
/** Conditions of dependencies. */
const [LESS, EQUAL, RPMLIB] = [2, 8, 1 << 24];
const SHA256 = 8;

/** Shared libraries that the executable of Node.js needs, as rpm names them. */
const LIBRARIES = [
  'libc.so.6(GLIBC_2.28)(64bit)',
  'libdl.so.2()(64bit)',
  'libgcc_s.so.1()(64bit)',
  'libm.so.6()(64bit)',
  'libpthread.so.0()(64bit)',
  'libstdc++.so.6()(64bit)',
  'libstdc++.so.6(GLIBCXX_3.4.21)(64bit)',
];

/** @returns name and content of an RPM package */
export function rpmOf(from: SystemPackage): { readonly name: string; readonly content: Buffer } {
  const { name, version, arch, mtime, license, summary, description } = from;
  const architecture = ARCHITECTURES[arch];
  const files = [...from.files.map(describeFile), ...ownDirectories(from)].sort((a, b) => compare(a.path, b.path));
  const archive = cpioOf(files, mtime);
  const payload = gzip(archive);
  const directories = [...new Set(files.map(({ path }) => `${dirname(path)}/`))];
  const requirements = [
    ...LIBRARIES.map((library) => ({ name: library, version: '', flags: 0 })),
    ...[
      ['CompressedFileNames', '3.0.4-1'],
      ['FileDigests', '4.6.0-1'],
      ['PayloadFilesHavePrefix', '4.0-1'],
    ].map(([feature, since = '']) => ({ name: `rpmlib(${feature})`, version: since, flags: RPMLIB | LESS | EQUAL })),
  ].sort((a, b) => compare(a.name, b.name));
  const provided = [name, `${name}(${architecture.name.replace('_', '-')})`];
  const header = headerOf(63, [
    [100, strings(['C'])],
    [1000, string(name)],
    [1001, string(version)],
    [1002, string('1')],
    [1004, translated(summary)],
    [1005, translated(description.trim())],
    [1006, int32([mtime])],
    [1007, string('localhost')],
    [1009, int32([files.reduce((sum, { content }) => sum + content.length, 0)])],
    [1014, string(license)],
    [1016, translated('Applications/System')],
    [1021, string('linux')],
    [1022, string(architecture.name)],
    [1028, int32(files.map(({ content }) => content.length))],
    [1030, int16(files.map(({ mode }) => mode))],
    [1033, int16(files.map(() => 0))],
    [1034, int32(files.map(() => mtime))],
    [1035, strings(files.map(({ content, mode }) => (isRegular(mode) ? hash('sha256', content) : '')))],
    [1036, strings(files.map(({ target }) => target))],
    [1037, int32(files.map(({ isDocumentation }) => (isDocumentation ? DOC : 0)))],
    [1039, strings(files.map(() => 'root'))],
    [1040, strings(files.map(() => 'root'))],
    // The name of a source package distinguishes binary packages from source packages.
    [1044, string(`${name}-${version}-1.src.rpm`)],
    [1045, int32(files.map(() => 0xffffffff))],
    [1047, strings(provided)],
    [1048, int32(requirements.map(({ flags }) => flags))],
    [1049, strings(requirements.map((each) => each.name))],
    [1050, strings(requirements.map((each) => each.version))],
    [1064, string('4.18.0')],
    [1095, int32(files.map(() => 1))],
    [1096, int32(files.map((_, i) => i + 1))],
    [1097, strings(files.map(() => ''))],
    [1112, int32(provided.map(() => EQUAL))],
    [1113, strings(provided.map(() => `${version}-1`))],
    [1116, int32(files.map(({ path }) => directories.indexOf(`${dirname(path)}/`)))],
    [1117, strings(files.map(({ path }) => basename(path)))],
    [1118, strings(directories)],
    [1124, string('cpio')],
    [1125, string('gzip')],
    [1126, string('9')],
    [5011, int32([SHA256])],
    [5062, string('utf-8')],
    [5092, strings([hash('sha256', payload)])],
    [5093, int32([SHA256])],
    [5097, strings([hash('sha256', archive)])],
  ]);
  const signature = headerOf(62, [
    [269, string(hash('sha1', header))],
    [273, string(hash('sha256', header))],
    [1000, int32([header.length + payload.length])],
    [1004, binary(createHash('md5').update(header).update(payload).digest())],
    [1007, int32([archive.length])],
  ]);
  const padding = Buffer.alloc(-signature.length & 7);
  const lead = leadOf(`${name}-${version}-1`, architecture.number);
  const content = Buffer.concat([lead, signature, padding, header, payload]);
  return { name: `${name}-${version}-1.${architecture.name}.rpm`, content };
}

interface DescribedFile {
  readonly path: string;
  /** Type and permissions. */
  readonly mode: number;
  readonly content: Buffer;
  /** Of a symbolic link; else empty. */
  readonly target: string;
  readonly isDocumentation: boolean;
}

function describeFile(file: PackagedFile): DescribedFile {
  if ('target' in file)
    return { path: file.path, mode: SYMBOLIC_LINK | 0o777, content: Buffer.from(file.target), target: file.target, isDocumentation: false };
  const { path, mode, content, isDocumentation = false } = file;
  return { path, mode: REGULAR_FILE | mode, content, target: '', isDocumentation };
}

/** The directories that no other package has, so that rpm removes them with the package. */
function ownDirectories({ name, files }: SystemPackage): readonly DescribedFile[] {
  const owned = new Set<string>();
  for (const { path } of files)
    for (let directory = dirname(path); directory.split('/').includes(name); directory = dirname(directory)) owned.add(directory);
  return [...owned].map((path) => ({ path, mode: DIRECTORY | 0o755, content: Buffer.alloc(0), target: '', isDocumentation: false }));
}

function isRegular(mode: number): boolean {
  return (mode & FILE_TYPE) === REGULAR_FILE;
}

/** The fixed start of the file. Only file(1) reads it; rpm reads the headers. */
function leadOf(name: string, architecture: number): Buffer {
  const lead = Buffer.alloc(96);
  lead.writeUInt32BE(0xedabeedb, 0);
  lead.writeUInt8(3, 4);
  lead.writeUInt16BE(architecture, 8);
  lead.write(name.slice(0, 65), 10, 'latin1');
  lead.writeUInt16BE(1, 76);
  lead.writeUInt16BE(5, 78);
  return lead;
}

/** A value of a header: its type, the number of its elements, and its bytes, aligned to the size of an element. */
interface Value {
  readonly type: number;
  readonly count: number;
  readonly align: number;
  readonly bytes: Buffer;
}

const text = (values: readonly string[]): Buffer => Buffer.from(values.map((value) => `${value}\0`).join(''), 'utf8');
const string = (value: string): Value => ({ type: 6, count: 1, align: 1, bytes: text([value]) });
const strings = (values: readonly string[]): Value => ({ type: 8, count: values.length, align: 1, bytes: text(values) });
const translated = (value: string): Value => ({ type: 9, count: 1, align: 1, bytes: text([value]) });
const binary = (bytes: Buffer): Value => ({ type: 7, count: bytes.length, align: 1, bytes });

function int16(values: readonly number[]): Value {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [i, value] of values.entries()) bytes.writeUInt16BE(value, i * 2);
  return { type: 3, count: values.length, align: 2, bytes };
}

function int32(values: readonly number[]): Value {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4);
  return { type: 4, count: values.length, align: 4, bytes };
}

/**
 * An index of the tags and a store with their values. The first tag is the region of all of them: its value, at the end of
 * the store, is an index entry that points back to the beginning.
 * @param tags in ascending order
 */
function headerOf(region: number, tags: readonly (readonly [number, Value])[]): Buffer {
  const store: Buffer[] = [];
  let size = 0;
  const append = (bytes: Buffer, align: number): number => {
    const padding = (align - (size % align)) % align;
    store.push(Buffer.alloc(padding), bytes);
    size += padding + bytes.length;
    return size - bytes.length;
  };
  const entries = tags.map(([tag, { type, count, align, bytes }]) => indexEntry(tag, type, append(bytes, align), count));
  const regionAt = append(indexEntry(region, 7, -(entries.length + 1) * 16, 16), 1);
  const intro = Buffer.alloc(16);
  intro.writeUInt32BE(0x8eade801, 0);
  intro.writeUInt32BE(entries.length + 1, 8);
  intro.writeUInt32BE(size, 12);
  return Buffer.concat([intro, indexEntry(region, 7, regionAt, 16), ...entries, ...store]);
}

function indexEntry(tag: number, type: number, offset: number, count: number): Buffer {
  const entry = Buffer.alloc(16);
  for (const [i, value] of [tag, type, offset, count].entries()) entry.writeInt32BE(value, i * 4);
  return entry;
}

/** @see cpio(5), "New ASCII Format" */
function cpioOf(files: readonly DescribedFile[], mtime: number): Buffer {
  const entry = (name: string, { inode, mode, content }: { readonly inode: number; readonly mode: number; readonly content: Buffer }) => {
    const fields = [inode, mode, 0, 0, 1, mtime, content.length, 0, 1, 0, 0, name.length + 1, 0];
    const head = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${name}\0`;
    return [Buffer.from(head, 'latin1'), Buffer.alloc(-head.length & 3), content, Buffer.alloc(-content.length & 3)];
  };
  return Buffer.concat([
    ...files.flatMap(({ path, mode, content }, i) => entry(`.${path}`, { inode: i + 1, mode, content })),
    ...entry('TRAILER!!!', { inode: 0, mode: 0, content: Buffer.alloc(0) }),
  ]);
}

function hash(algorithm: string, content: Buffer): string {
  return createHash(algorithm).update(content).digest('hex');
}
