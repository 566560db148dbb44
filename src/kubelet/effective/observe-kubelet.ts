import { AppError } from '../../base/errors.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { type UnitState, unitState } from '../../host/facts/unit.ts';
import type { Host } from '../../host/host.ts';
import { observe } from '../../host/observe.ts';
import { environmentFilesOf, execStartWords, type UnitSourceFile, type UnitTexts } from '../../host/systemd/exec-start.ts';
import { INSTANCE_CONFIG } from '../../kube/well-known.ts';
import { type Catalogue, formatMinor, type Minor, NEWEST_MINOR, OLDEST_KNOWN_MINOR, parseMinor } from '../catalogue.ts';
import { type KubeletProcess, kubeletProcess } from '../facts/kubelet-process.ts';
import { kubeletBinary } from '../facts/kubelet-version.ts';
import { type CommandLineFlag, parseCommandLine } from '../flags/command-line.ts';
import { assignedFile, checkpointFile, LAST_DYNAMIC_MINOR, parseAssigned } from './dynamic-store.ts';
import { type HostText, layerRunningConfig, type RunningConfig } from './running-config.ts';

/** A flag that the next start of the kubelet would get, and the file that sets it. */
export interface DiskFlag extends CommandLineFlag {
  readonly source: string;
}

/** The kubelet configuration of a host, on disk and in the running process. */
export interface ObservedKubelet {
  readonly minor: Minor;
  /** Of the running kubelet, else of the binary. */
  readonly version: string;
  /** Of the binary; null if `kubelet --version` failed. */
  readonly diskVersion: string | null;
  readonly nodeName: string | null;
  /** Null: no kubelet is running. */
  readonly kubelet: KubeletProcess | null;
  readonly unit: UnitState | null;
  /** Flags of the running kubelet, else of the next start. */
  readonly flags: readonly DiskFlag[];
  /** Flags of the next start by systemd; null without a unit. */
  readonly diskFlags: readonly DiskFlag[] | null;
  /** Configuration files in the order of precedence, the last wins. */
  readonly files: readonly { readonly path: string; readonly file: FileFact | null }[];
  /** kubeadm's instance-config.yaml, which the kubelet does not read; null: it does not exist. */
  readonly instanceConfig: HostText | null;
  readonly running: RunningConfig;
}

/** How a kubelet is started, without its configuration files. */
export interface ObservedFlags {
  readonly minor: Minor;
  readonly version: string;
  readonly diskVersion: string | null;
  readonly hostname: string | null;
  readonly kubelet: KubeletProcess | null;
  readonly unit: UnitState | null;
  readonly flags: readonly DiskFlag[];
  readonly diskFlags: readonly DiskFlag[] | null;
}

/**
 * Reads how the kubelet of a host is started: the running command line, unit and environment files.
 * @throws AppError KUBELET_MISSING, KUBELET_UNSUPPORTED, with the host
 */
export async function observeKubeletFlags(host: Host, catalogue: Catalogue, signal?: AbortSignal): Promise<ObservedFlags> {
  const base = await observe(
    host,
    combineFacts({ kubelet: kubeletProcess, binary: kubeletBinary, unit: unitState('kubelet'), os: operatingSystem }),
    signal,
  );
  const diskVersion = base.binary !== null && 'version' in base.binary ? base.binary.version : null;
  const version = base.kubelet?.version ?? diskVersion;
  if (version === null) throw missingKubelet(host.name);
  const minor = supportedMinor(version, host.name);
  const options = { catalogue, minor };
  const diskFlags = await readDiskFlags(host, base.unit, options, signal);
  const running = base.kubelet === null ? null : parseCommandLine(base.kubelet.argv.slice(1), options).flags;
  const flags = running === null ? (diskFlags ?? []) : running.map((flag) => ({ ...flag, source: sourceOf(flag, diskFlags) }));
  const { kubelet, unit, os } = base;
  return { minor, version, diskVersion, hostname: os.hostname, kubelet, unit, flags, diskFlags };
}

/**
 * Reads how the kubelet of a host is configured: unit, environment files, the running command line, configuration file,
 * drop-in files. Takes a handful of round trips and changes nothing.
 * @throws AppError KUBELET_MISSING, KUBELET_UNSUPPORTED, HOST_FILE_MISSING, or the problems of a file, with the host
 */
export async function observeKubelet(host: Host, catalogue: Catalogue, signal?: AbortSignal): Promise<ObservedKubelet> {
  const { hostname, ...observed } = await observeKubeletFlags(host, catalogue, signal);
  const { minor, flags } = observed;
  const texts = await readConfigTexts(host, flags, minor, signal);
  return {
    ...observed,
    nodeName: flags.findLast(({ name }) => name === 'hostname-override')?.value ?? hostname,
    files: texts.files,
    instanceConfig: texts.instanceConfig,
    running: withHost(host.name, () => layerRunningConfig({ catalogue, minor, flags, ...texts })),
  };
}

interface Options {
  readonly catalogue: Catalogue;
  readonly minor: Minor;
}

/** Flags that systemd would pass to the kubelet now; null without a unit. */
async function readDiskFlags(
  host: Host,
  unit: UnitState | null,
  options: Options,
  signal?: AbortSignal,
): Promise<readonly DiskFlag[] | null> {
  const texts = await observeUnitTexts(host, unit, signal);
  const words = texts === null ? undefined : execStartWords(texts.unitFiles, texts.environmentFiles)?.slice(1);
  if (words === undefined) return null;
  const { flags } = parseCommandLine(
    words.map(({ word }) => word),
    options,
  );
  return flags.map((flag) => ({ ...flag, source: words[flag.index]?.source ?? '' }));
}

/** The file that sets a flag of the running kubelet; the flag may since have been removed from disk. */
function sourceOf(flag: CommandLineFlag, diskFlags: readonly DiskFlag[] | null): string {
  const same = diskFlags?.findLast(({ name, value }) => name === flag.name && value === flag.value);
  return same?.source ?? 'the running command line';
}

interface ConfigTexts {
  readonly configFile: HostText | null;
  readonly dynamicConfig: HostText | null;
  readonly dropIns: readonly HostText[];
  readonly instanceConfig: HostText | null;
  readonly files: ObservedKubelet['files'];
}

async function readConfigTexts(host: Host, flags: readonly DiskFlag[], minor: Minor, signal?: AbortSignal): Promise<ConfigTexts> {
  const flag = (name: string): string => flags.findLast((one) => one.name === name)?.value ?? '';
  const [configPath, dropInDir, dynamicDir] = [
    flag('config'),
    flag('config-dir'),
    minor <= LAST_DYNAMIC_MINOR ? flag('dynamic-config-dir') : '',
  ];
  const assigned = dynamicDir === '' ? '' : assignedFile(dynamicDir);
  const first = await observe(host, fileFacts([configPath, assigned, INSTANCE_CONFIG].filter(Boolean)), signal);
  const checkpoint = parseAssigned(first.get(assigned)?.content ?? '');
  const payload = checkpoint === null ? '' : checkpointFile(dynamicDir, checkpoint);
  const second = payload === '' ? [] : await observe(host, fileFacts([payload]), signal);
  const configDropIns = dropInDir === '' ? new Map<string, FileFact | null>() : await readConfigDropIns(host, dropInDir, signal);
  const files = new Map([...first, ...second, ...configDropIns]);
  const read = (path: string): HostText => {
    const text = files.get(path)?.content;
    if (text === undefined) throw missingFile(host.name, path);
    return { path, text };
  };
  return {
    configFile: configPath === '' ? null : read(configPath),
    dynamicConfig: payload === '' ? null : read(payload),
    dropIns: [...configDropIns.keys()].map(read),
    instanceConfig: first.get(INSTANCE_CONFIG)?.content === undefined ? null : read(INSTANCE_CONFIG),
    files: [configPath, payload, ...configDropIns.keys()].filter(Boolean).map((path) => ({ path, file: files.get(path) ?? null })),
  };
}

/** Reads the drop-in files of `--config-dir` in merge order, except those that cannot be read. */
export async function readDropIns(host: Host, directory: string, signal?: AbortSignal): Promise<readonly HostText[]> {
  const configDropIns = await readConfigDropIns(host, directory, signal);
  return [...configDropIns].flatMap(([path, file]) => (file?.content === undefined ? [] : [{ path, text: file.content }]));
}

/** The drop-in files of `--config-dir` in merge order: names in byte order, a directory at the position of its name. */
async function readConfigDropIns(host: Host, directory: string, signal?: AbortSignal): Promise<ReadonlyMap<string, FileFact | null>> {
  const listed = defineFact({ names: { kind: 'list', path: directory } }, ({ names }) => names ?? []);
  const paths = (await observe(host, listed, signal)).toSorted(inByteOrder).map((name) => `${trimTrailing(directory, '/')}/${name}`);
  const facts = await observe(host, fileFacts(paths), signal);
  const found = new Map<string, FileFact | null>();
  for (const path of paths) {
    const file = facts.get(path) ?? null;
    // Links to directories are not followed.
    if (file?.type === 'directory' && file.target === undefined)
      for (const [below, configDropIn] of await readConfigDropIns(host, path, signal)) found.set(below, configDropIn);
    else if (path.endsWith('.conf')) found.set(path, file);
  }
  return found;
}

function inByteOrder(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function missingKubelet(host: string): AppError {
  return new AppError({
    host,
    code: 'KUBELET_MISSING',
    message: 'the kubelet is missing, or kubelet --version failed',
    hint: 'Install the kubelet, or check kubelet --version on the host',
  });
}

function missingFile(host: string, path: string): AppError {
  return new AppError({
    host,
    code: 'HOST_FILE_MISSING',
    message: `${path}: the file does not exist, but the kubelet is configured to read it`,
    hint: 'Rerun kubeletadm init or kubeletadm join',
  });
}

function supportedMinor(version: string, host: string): Minor {
  const minor = parseMinor(version);
  if (minor !== null && minor >= OLDEST_KNOWN_MINOR) return Math.min(minor, NEWEST_MINOR);
  const range = `${formatMinor(OLDEST_KNOWN_MINOR)} to ${formatMinor(NEWEST_MINOR)}`;
  throw new AppError({ host, code: 'KUBELET_UNSUPPORTED', message: `kubelet ${version} is not supported; supported versions: ${range}` });
}

/** Adds the host to the problems of its files. */
function withHost<T>(host: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(
      error.problems.map((problem) => ({ host, ...problem })),
      { exitCode: error.exitCode, cause: error },
    );
  }
}

/** The unit files that systemd loaded (unit and drop-ins), and their environment files; null without a unit. */
export async function observeUnitTexts(host: Host, unit: UnitState | null, signal?: AbortSignal): Promise<UnitTexts | null> {
  const unitPaths = unit === null ? [] : [unit.fragmentPath, ...unit.dropInPaths].filter((path) => path !== null);
  if (unitPaths.length === 0) return null;
  const unitFiles = foundTexts(unitPaths, await observe(host, fileFacts(unitPaths), signal));
  const environmentPaths = environmentFilesOf(unitFiles);
  return { unitFiles, environmentFiles: foundTexts(environmentPaths, await observe(host, fileFacts(environmentPaths), signal)) };
}

function foundTexts(paths: readonly string[], files: ReadonlyMap<string, FileFact | null>): readonly UnitSourceFile[] {
  return paths.map((path) => ({ path, text: files.get(path)?.content ?? null }));
}
