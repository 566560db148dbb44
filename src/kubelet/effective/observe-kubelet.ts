import { AppError, withHostInErrors } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import { type UnitState, unitState } from '../../host/facts/unit.ts';
import { type CommandLineWord, execStartWords } from '../../host/systemd/exec-start.ts';
import { observeUnitTexts } from '../../host/systemd/observe-unit-texts.ts';
import { INSTANCE_CONFIG } from '../../kube/well-known.ts';
import {
  type Catalogue,
  formatMinor,
  type KubeletReader,
  type Minor,
  NEWEST_MINOR,
  OLDEST_KNOWN_MINOR,
  parseMinor,
} from '../catalogue/catalogue.ts';
import { type KubeletProcess, kubeletProcess } from '../facts/kubelet-process.ts';
import { kubeletBinary } from '../facts/kubelet-version.ts';
import { parseCommandLine } from '../flags/command-line.ts';
import { configInputOf, type KubeletSetup, placedFlags, readKubeletSetup, type SetupOptions } from './kubelet-setup.ts';
import { type HostText, layerRunningConfig, type PlacedFlag, type RunningConfig } from './running-config.ts';

/** How a kubelet is started, without its configuration files. */
export interface ObservedFlags {
  readonly minor: Minor;
  /** Of the running kubelet, else of the binary. */
  readonly version: string;
  /** Of the binary; null if `kubelet --version` failed. */
  readonly diskVersion: string | null;
  readonly hostname: string | null;
  /** Null: no kubelet is running. */
  readonly kubelet: KubeletProcess | null;
  readonly unit: UnitState | null;
  /** Unit, drop-ins and environment files of the next start, with their times in Unix seconds; null: unknown. */
  readonly unitFiles: readonly { readonly path: string; readonly modifiedAt: number | null }[];
  /** Command line of the running kubelet, else of the next start. */
  readonly words: readonly CommandLineWord[];
  readonly flags: readonly PlacedFlag[];
  /** Command line of the next start by systemd; null without a unit. */
  readonly diskWords: readonly CommandLineWord[] | null;
  readonly diskFlags: readonly PlacedFlag[] | null;
}

/** The command lines and files of a host's kubelet: of the running process, and of the next start. */
export interface ObservedSetups extends Omit<ObservedFlags, 'hostname' | 'words' | 'diskWords'> {
  readonly nodeName: string | null;
  /** Command line and files of the running kubelet, else of the next start. */
  readonly setup: KubeletSetup;
  /** The same of the next start, after a daemon-reload; null without a unit. */
  readonly next: KubeletSetup | null;
  /** kubeadm's instance-config.yaml, which the kubelet does not read; null: it does not exist. */
  readonly instanceConfig: HostText | null;
}

/** `ObservedSetups` with the merged configuration of a kubelet that can start with its files. */
export interface ObservedKubelet extends ObservedSetups {
  /** The configuration of `setup`. */
  readonly running: RunningConfig;
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
  const { kubelet, unit, os } = base;
  const texts = await observeUnitTexts(host, unit, { signal });
  const diskWords = texts === null ? null : execStartWords(texts.unitFiles, texts.environmentFiles, os.hostname);
  const words = kubelet === null ? (diskWords ?? []) : wordsOfProcess(kubelet.argv, diskWords, { catalogue, minor });
  const [flags, diskFlags] = [words, diskWords].map((line) => (line === null ? null : placedFlags(line, { catalogue, minor })));
  return {
    minor,
    version,
    diskVersion,
    hostname: os.hostname,
    kubelet,
    unit,
    unitFiles: [...(texts?.unitFiles ?? []), ...(texts?.environmentFiles ?? [])].map(({ path, modifiedAt }) => ({
      path,
      modifiedAt: modifiedAt ?? null,
    })),
    words,
    diskWords,
    flags: flags ?? [],
    diskFlags: diskFlags ?? null,
  };
}

/**
 * Reads how the kubelet of a host is configured, now and at its next start: unit, environment files, the running command
 * line, configuration file, drop-in files. Takes a handful of round trips and changes nothing.
 * @throws AppError KUBELET_MISSING, KUBELET_UNSUPPORTED, HOST_FILE_MISSING, or the problems of a file, with the host
 */
export async function observeKubelet(host: Host, catalogue: Catalogue, signal?: AbortSignal): Promise<ObservedKubelet> {
  const observed = await observeKubeletSetups(host, catalogue, signal);
  const { setup, minor } = observed;
  if (setup.missing[0] !== undefined) throw missingFile(host.name, setup.missing[0]);
  return { ...observed, running: withHostInErrors(host.name, () => layerRunningConfig(configInputOf(setup, { catalogue, minor }))) };
}

/**
 * Reads the same without merging the files, which may be missing or invalid.
 * @throws AppError KUBELET_MISSING, KUBELET_UNSUPPORTED, with the host
 */
export async function observeKubeletSetups(host: Host, catalogue: Catalogue, signal?: AbortSignal): Promise<ObservedSetups> {
  const { hostname, words, diskWords, ...observed } = await observeKubeletFlags(host, catalogue, signal);
  const { minor, flags } = observed;
  const setup = await readKubeletSetup(host, words, { catalogue, minor, signal });
  const next = diskWords === null ? null : await readKubeletSetup(host, diskWords, { catalogue, minor, signal });
  const instanceConfig = (await observe(host, fileFacts([INSTANCE_CONFIG]), signal)).get(INSTANCE_CONFIG)?.content;
  return {
    ...observed,
    nodeName: flags.findLast(({ name }) => name === 'hostname-override')?.value ?? hostname,
    setup,
    next,
    instanceConfig: instanceConfig === undefined ? null : { path: INSTANCE_CONFIG, text: instanceConfig },
  };
}

/**
 * The command line with which systemd starts the kubelet at its next start, after a daemon-reload; null without a unit
 * or ExecStart.
 * @param planned texts that replace files of the host. Default: none
 */
export async function observeNextWords(
  host: Host,
  { unit, hostname, ...options }: Pick<ObservedFlags, 'unit' | 'hostname'> & Pick<SetupOptions, 'planned' | 'signal'>,
): Promise<readonly CommandLineWord[] | null> {
  const texts = await observeUnitTexts(host, unit, options);
  return texts === null ? null : execStartWords(texts.unitFiles, texts.environmentFiles, hostname);
}

/** The words of a running kubelet with the place of each; the place may since have been changed on disk. */
export function wordsOfProcess(
  argv: readonly string[],
  diskWords: readonly CommandLineWord[] | null,
  options: KubeletReader,
): readonly CommandLineWord[] {
  const disk = placedFlags(diskWords ?? [], options);
  const words = argv.map((word): CommandLineWord => ({ word, source: RUNNING }));
  for (const { name, value, index } of parseCommandLine(argv.slice(1), options).flags) {
    const flag = disk.findLast((one) => one.name === name && one.value === value);
    const word = words[index + 1];
    if (flag !== undefined && word !== undefined) words[index + 1] = { ...word, source: flag.source, file: flag.file };
  }
  return words;
}

const RUNNING = 'the running command line';

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
