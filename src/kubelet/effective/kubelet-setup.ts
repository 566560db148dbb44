import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import type { CommandLineWord } from '../../host/systemd/exec-start.ts';
import type { PlannedTexts } from '../../host/systemd/observe-unit-texts.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import { parseCommandLine } from '../flags/command-line.ts';
import { assignedFile, checkpointFile, LAST_DYNAMIC_MINOR, parseAssigned } from './dynamic-store.ts';
import type { HostText, PlacedFlag, RunningConfigInput } from './running-config.ts';

/** The command line of one start of a kubelet, and the configuration files that it names. */
export interface KubeletSetup {
  /** The program first. */
  readonly words: readonly CommandLineWord[];
  readonly flags: readonly PlacedFlag[];
  /** File of `--config`, wherever it is; null: no flag, or the file is missing. */
  readonly configFile: HostText | null;
  /** Checkpoint of the built-in dynamic configuration (kubelets up to 1.23). */
  readonly dynamicConfig: HostText | null;
  /** Drop-in files of `--config-dir`, in merge order. */
  readonly dropIns: readonly HostText[];
  /** All these files in the order of precedence, the last wins; `file` is null if it does not exist. */
  readonly files: readonly { readonly path: string; readonly file: FileFact | null }[];
  /** Files among them that do not exist: a kubelet does not start without them. */
  readonly missing: readonly string[];
}

export interface SetupOptions extends KubeletReader {
  /** Planned texts, read instead of the files of the host. Default: none. */
  readonly planned?: PlannedTexts;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads the configuration files that a command line of a kubelet names, wherever they are: `--config`, `--config-dir` and
 * `--dynamic-config-dir`.
 * @param words the program first
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go NewKubeletCommand, mergeKubeletConfigurations (1.20 to 1.36)
 */
export async function readKubeletSetup(host: Host, words: readonly CommandLineWord[], options: SetupOptions): Promise<KubeletSetup> {
  const flags = placedFlags(words, options);
  const flag = (name: string): string => flags.findLast((one) => one.name === name)?.value ?? '';
  const [configPath, dropInDir] = [flag('config'), flag('config-dir')];
  const dynamicDir = options.minor <= LAST_DYNAMIC_MINOR ? flag('dynamic-config-dir') : '';
  const assigned = dynamicDir === '' ? '' : assignedFile(dynamicDir);
  const first = await readFiles(host, [configPath, assigned].filter(Boolean), options);
  const checkpoint = parseAssigned(first.get(assigned)?.content ?? '');
  const payload = checkpoint === null ? '' : checkpointFile(dynamicDir, checkpoint);
  const second = payload === '' ? new Map<string, FileFact | null>() : await readFiles(host, [payload], options);
  const dropIns = dropInDir === '' ? new Map<string, FileFact | null>() : await readDropInFiles(host, dropInDir, options);
  const found = new Map([...first, ...second, ...dropIns]);
  const files = [configPath, payload, ...dropIns.keys()].filter(Boolean).map((path) => ({ path, file: found.get(path) ?? null }));
  return {
    words,
    flags,
    configFile: textAt(found, configPath),
    dynamicConfig: textAt(found, payload),
    dropIns: [...dropIns.keys()].flatMap((path) => textAt(dropIns, path) ?? []),
    files,
    missing: files.filter(({ file }) => file?.content === undefined).map(({ path }) => path),
  };
}

/** The flags of a command line with the place of each. */
export function placedFlags(words: readonly CommandLineWord[], { catalogue, minor }: KubeletReader): readonly PlacedFlag[] {
  const args = words.slice(1);
  const { flags } = parseCommandLine(
    args.map(({ word }) => word),
    { catalogue, minor },
  );
  return flags.map(({ name, value, index }) => {
    const { source = '', file } = args[index] ?? {};
    return { name, value, source, file };
  });
}

/** The input of `layerRunningConfig` for a setup. */
export function configInputOf(
  { configFile, dynamicConfig, dropIns, flags }: KubeletSetup,
  { catalogue, minor }: KubeletReader,
): RunningConfigInput {
  return { catalogue, minor, configFile, dynamicConfig, dropIns, flags };
}

type Files = ReadonlyMap<string, FileFact | null>;

function textAt(files: Files, path: string): HostText | null {
  const text = files.get(path)?.content;
  return text === undefined ? null : { path, text };
}

async function readFiles(
  host: Host,
  paths: readonly string[],
  { planned, signal }: Omit<SetupOptions, keyof KubeletReader>,
): Promise<Files> {
  const onHost = paths.filter((path) => planned?.has(path) !== true);
  const found = onHost.length === 0 ? new Map<string, FileFact | null>() : await observe(host, fileFacts(onHost), signal);
  return new Map(
    paths.map((path) => [path, planned?.has(path) === true ? plannedFile(planned.get(path) ?? null) : (found.get(path) ?? null)]),
  );
}

function plannedFile(content: string | null): FileFact | null {
  return content === null ? null : { type: 'file', mode: 0o644, owner: 'root:root', content };
}

/** Reads the drop-in files of `--config-dir` in merge order, except those that cannot be read. */
export async function readDropIns(host: Host, directory: string, signal?: AbortSignal): Promise<readonly HostText[]> {
  const files = await readDropInFiles(host, directory, { signal });
  return [...files.keys()].flatMap((path) => textAt(files, path) ?? []);
}

/** The drop-in files in merge order: names in byte order, a directory at the position of its name. */
async function readDropInFiles(host: Host, directory: string, options: Omit<SetupOptions, keyof KubeletReader>): Promise<Files> {
  const base = trimTrailing(directory, '/');
  const listed = defineFact({ names: { kind: 'list', path: directory } }, ({ names }) => names ?? []);
  const planned = [...(options.planned ?? [])].flatMap(([path, text]) =>
    text !== null && path.startsWith(`${base}/`) ? [path.slice(base.length + 1).replace(/\/.*$/s, '')] : [],
  );
  const names = new Set([...(await observe(host, listed, options.signal)), ...planned]);
  const paths = [...names].toSorted(inByteOrder).map((name) => `${base}/${name}`);
  const facts = await readFiles(host, paths, options);
  const found = new Map<string, FileFact | null>();
  for (const path of paths) {
    const file = facts.get(path) ?? null;
    // Links to directories are not followed.
    if (file?.type === 'directory' && file.target === undefined)
      for (const [below, dropIn] of await readDropInFiles(host, path, options)) found.set(below, dropIn);
    else if (path.endsWith('.conf') && !(options.planned?.has(path) === true && file === null)) found.set(path, file);
  }
  return found;
}

function inByteOrder(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
