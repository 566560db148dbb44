import { isJsonObject, type JsonObject, parseJsonObject } from '../../base/json.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { localAddresses } from '../../host/facts/addresses.ts';
import { combineFacts, defineFact, type Fact, mapFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { listeningPorts } from '../../host/facts/listening-ports.ts';
import type { CommandFact, FactQuery, FileFact } from '../../host/facts/query.ts';
import { LOGIND } from '../../host/systemd/logind.ts';
import { textAt } from '../documents/values.ts';
import { ALIGNMENT_FIELDS, CPU_TOPOLOGY, sharedCpus, wantsFullCores } from './alignment-risks.ts';
import { CGROUP_FIELDS, requiredCgroupFacts } from './cgroup-risks.ts';
import { DIRECTORIES, endpointPath, SOCKETS, STARTUP_FILES } from './file-risks.ts';
import { IMAGE_POLICY } from './image-risks.ts';
import { MANAGER_STATES, managerStateTexts, storedPolicy } from './manager-states.ts';
import { affects } from './pod-risk.ts';
import type { FileSystemSpace, HostRiskFacts, RiskChange } from './risk-input.ts';
import { SHUTDOWN_FIELDS, shutdownSeconds } from './shutdown-risks.ts';
import { CGROUP_VERSION_FIELDS, KERNEL_SETTINGS } from './start-risks.ts';

export interface RiskFactsOptions extends RiskChange {
  /** `--root-dir` of the kubelet. */
  readonly rootDir: string;
  /** Files that are written before the kubelet starts, by path. */
  readonly given: Readonly<Record<string, string>>;
  /** Beginnings of paths that the host does not show to this process; such paths are unknown. */
  readonly hidden: readonly string[];
}

const AMOUNTS = [
  'kubeReserved',
  'systemReserved',
  'evictionHard',
  'evictionSoft',
  'evictionSoftGracePeriod',
  'mergeDefaultEvictionSettings',
];
const PORTS = ['port', 'readOnlyPort', 'healthzPort', 'address', 'healthzBindAddress'];
const STATIC_PODS = ['staticPodPath', 'staticPodURL'];

/**
 * Reads the facts of a host that a change depends on, and no others: at most one round trip, and a second one
 * for the manifests of static pods.
 * @throws the errors of `host.query`
 */
export async function readRiskFacts(host: Host, options: RiskFactsOptions, signal?: AbortSignal): Promise<HostRiskFacts> {
  const { before, after, rootDir, given, hidden } = options;
  const isKnown = (path: string): boolean => given[path] === undefined && !hidden.some((start) => path.startsWith(start));
  const paths = filesOf(options).filter(isKnown);
  const when = <T>(fields: readonly string[], fact: Fact<T>): Fact<T | null> => (affects(options, fields) ? fact : UNKNOWN);
  const directories = affects(options, STATIC_PODS)
    ? [before, after].flatMap((config) => (config === null ? [] : textAt(config, 'staticPodPath'))).filter((path) => path !== '')
    : [];
  const inspected = [...new Set(directories)].filter(isKnown);
  const { files, found, space, podCgroups, ...facts } = await observe(
    host,
    combineFacts({
      files: fileFacts(paths, { content: false }),
      found: manifestFiles(inspected),
      memory: when(AMOUNTS, MEMORY),
      space: when(AMOUNTS, fileSystems(rootDir, imageDirectory(after))),
      pids: when(AMOUNTS, PIDS),
      podCgroups: when([...AMOUNTS, 'podPidsLimit'], POD_CGROUPS),
      onlineCpus: when(['reservedSystemCPUs', 'podsPerCore'], ONLINE_CPUS),
      ports: when(PORTS, listeningPorts),
      addresses: when(PORTS, localAddresses),
      usesSwap: when(['failSwapOn'], SWAP),
      cgroupVersion: when(CGROUP_VERSION_FIELDS, CGROUP_VERSION),
      cgroups: when(CGROUP_FIELDS, requiredCgroupFacts(after)),
      cpuTopology: when(ALIGNMENT_FIELDS, CPU_TOPOLOGY),
      sharedCpus: wantsFullCores(after) ? sharedCpus(rootDir) : UNKNOWN,
      maxOpenFiles: when(['maxOpenFiles'], MAX_OPEN_FILES),
      managerPolicies: when(Object.keys(MANAGER_STATES), managerPolicies(rootDir)),
      sysctls: when(['protectKernelDefaults'], SYSCTLS),
      logind: shutdownSeconds(after) === 0 ? UNKNOWN : when(SHUTDOWN_FIELDS, LOGIND),
    }),
    signal,
  );
  const ofGiven = directories.flatMap((path) => (given[path] === undefined ? [] : [[path, manifestsOf([given[path]])] as const]));
  return {
    ...facts,
    nodeFs: space?.nodeFs ?? null,
    imageFs: space?.imageFs ?? null,
    podTasks: podCgroups?.podTasks ?? null,
    podsMemoryBytes: podCgroups?.podsMemoryBytes ?? null,
    files: { ...Object.fromEntries(files), ...Object.fromEntries(Object.keys(given).map((path) => [path, { type: 'file' as const }])) },
    manifests: { ...(await readManifests(host, found, signal)), ...Object.fromEntries(ofGiven) },
    managerPolicies: facts.managerPolicies ?? {},
    pulledImages: affects(options, IMAGE_POLICY) ? await readPulledImages(host, rootDir, signal) : null,
    sysctls: facts.sysctls ?? {},
  };
}

const UNKNOWN: Fact<null> = defineFact({}, () => null);

/** The changed files, sockets and directories of a configuration. */
function filesOf(change: RiskChange): readonly string[] {
  const files = ['resolvConf', ...STARTUP_FILES, ...DIRECTORIES].map((field) => [field, textAt(change.after, field)] as const);
  const sockets = SOCKETS.map((field) => [field, endpointPath(textAt(change.after, field)) ?? ''] as const);
  return [...files, ...sockets].flatMap(([field, path]) => (path !== '' && affects(change, [field]) ? [path] : []));
}

/** The files that the kubelet reads at a path of static pods; null: the path does not exist. */
function manifestFiles(paths: readonly string[]): Fact<Readonly<Record<string, readonly string[] | null>>> {
  const queries: Record<string, FactQuery> = {};
  for (const path of paths) {
    queries[`file ${path}`] = { kind: 'file', path, content: false };
    queries[`list ${path}`] = { kind: 'list', path };
  }
  return defineFact(queries, (answers) =>
    Object.fromEntries(
      paths.map((path) => {
        const [file, names] = [answers[`file ${path}`] as FileFact | null, answers[`list ${path}`] as readonly string[] | null];
        if (file?.type === 'file') return [path, [path]];
        // The kubelet ignores hidden files.
        return [path, file === null ? null : (names ?? []).filter((name) => !name.startsWith('.')).map((name) => `${path}/${name}`)];
      }),
    ),
  );
}

/**
 * Reads the static pods of a directory. @returns null: the directory does not exist
 * @throws the errors of `host.query`
 */
export async function readStaticPods(host: Host, directory: string, signal?: AbortSignal): Promise<HostRiskFacts['manifests'][string]> {
  const manifests = await readManifests(host, await observe(host, manifestFiles([directory]), signal), signal);
  return manifests[directory] ?? null;
}

async function readManifests(
  host: Host,
  found: Readonly<Record<string, readonly string[] | null>>,
  signal?: AbortSignal,
): Promise<HostRiskFacts['manifests']> {
  const all = Object.values(found).flatMap((paths) => paths ?? []);
  const files = all.length === 0 ? new Map<string, FileFact | null>() : await observe(host, fileFacts(all), signal);
  return Object.fromEntries(
    Object.entries(found).map(([path, names]) => [
      path,
      names === null ? null : manifestsOf(names.flatMap((name) => files.get(name)?.content ?? [])),
    ]),
  );
}

/**
 * Reads the names of the images that the kubelet pulled with recorded credentials.
 * @see kubernetes/kubernetes pkg/kubelet/images/pullmanager/fs_pullrecords.go (1.33 to 1.36)
 */
async function readPulledImages(host: Host, rootDir: string, signal?: AbortSignal): Promise<readonly string[]> {
  const directory = `${rootDir}/image_manager/pulled`;
  const listed = defineFact({ names: { kind: 'list', path: directory } }, ({ names }) => names ?? []);
  const paths = (await observe(host, listed, signal)).filter((name) => name.startsWith('sha256-')).map((name) => `${directory}/${name}`);
  const files = paths.length === 0 ? new Map<string, FileFact | null>() : await observe(host, fileFacts(paths), signal);
  return [...files.values()].flatMap((file) => {
    const mapping = parseJsonObject(file?.content?.trim() ?? '')?.credentialMapping;
    return isJsonObject(mapping) ? Object.keys(mapping) : [];
  });
}

/** The pods of manifests; a text that is not a Pod has none. */
function manifestsOf(texts: readonly string[]): readonly { readonly namespace: string; readonly name: string }[] {
  return texts.flatMap((text) => {
    const root = parseSource(text, 'manifest').documents[0]?.root ?? null;
    const value = root === null ? null : sourceToJson(root);
    const metadata = isJsonObject(value) && value.kind === 'Pod' && isJsonObject(value.metadata) ? value.metadata : {};
    if (typeof metadata.name !== 'string') return [];
    return [{ name: metadata.name, namespace: typeof metadata.namespace === 'string' ? metadata.namespace : 'default' }];
  });
}

/**
 * Memory as the kubelet counts it for memory.available: the free memory, and the file cache that was not used
 * for a while.
 * @see google/cadvisor container/libcontainer/handler.go: working set = usage - inactive_file
 */
const MEMORY = defineFact({ meminfo: { kind: 'file', path: '/proc/meminfo' } }, ({ meminfo }): HostRiskFacts['memory'] =>
  parseMeminfo(meminfo?.content ?? ''),
);

/** Parses /proc/meminfo; null when a needed line is missing. */
export function parseMeminfo(text: string): HostRiskFacts['memory'] {
  const lines = text.matchAll(/^([\w()]{1,40}): {1,20}(\d{1,15}) kB$/gm);
  const bytes = new Map([...lines].map(([, name, kibibytes]) => [name, Number(kibibytes) * 1024]));
  const [total, free, inactive] = ['MemTotal', 'MemFree', 'Inactive(file)'].map((name) => bytes.get(name));
  return total === undefined || free === undefined || inactive === undefined
    ? null
    : { capacityBytes: total, availableBytes: free + inactive };
}

/**
 * The limit and the number of processes and threads.
 * @see kubernetes/kubernetes pkg/kubelet/stats/pidlimit/pidlimit_linux.go (1.36)
 */
const PIDS = defineFact(
  {
    pidMax: { kind: 'file', path: '/proc/sys/kernel/pid_max' },
    threadsMax: { kind: 'file', path: '/proc/sys/kernel/threads-max' },
    loadavg: { kind: 'file', path: '/proc/loadavg' },
  },
  ({ pidMax, threadsMax, loadavg }): HostRiskFacts['pids'] => {
    const limits = [pidMax, threadsMax].flatMap((file) => numberIn(file) ?? []);
    const [, running] = /^\S+ \S+ \S+ \d+\/(\d{1,12}) /.exec(loadavg?.content ?? '') ?? [];
    return limits.length === 0 || running === undefined ? null : { max: Math.min(...limits), running: Number(running) };
  },
);

function numberIn(file: FileFact | null): number | null {
  const text = file?.content?.trim() ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** Prints available and all blocks, the block size, free and all inodes of each directory; `-`: no directory. */
const SPACE = 'for d do [ -d "$d" ] && stat -f -c "%a %b %S %d %c" "$d" || echo -; done';

function fileSystems(rootDir: string, images: string) {
  return defineFact({ space: { kind: 'command', argv: ['sh', '-c', SPACE, 'sh', rootDir, images] } }, ({ space }) => {
    const [nodeFs = null, imageFs = null] = parseSpace(space);
    return { nodeFs, imageFs };
  });
}

function parseSpace({ exitCode, stdout }: CommandFact): readonly (FileSystemSpace | null)[] {
  if (exitCode !== 0) return [];
  return stdout.split('\n').map((line) => {
    const [available, blocks, size, free, inodes] = line.split(' ').map(Number);
    if (available === undefined || blocks === undefined || size === undefined || free === undefined || inodes === undefined) return null;
    if (![available, blocks, size, free, inodes].every(Number.isFinite)) return null;
    return { availableBytes: available * size, capacityBytes: blocks * size, freeInodes: free, inodes };
  });
}

function imageDirectory(config: JsonObject): string {
  const socket = textAt(config, 'imageServiceEndpoint') || textAt(config, 'containerRuntimeEndpoint');
  return /crio/.test(socket) ? '/var/lib/containers' : /docker/.test(socket) ? '/var/lib/docker' : '/var/lib/containerd';
}

/**
 * Prints `pod NAME TASKS` for the cgroup of each pod, and `memory USAGE CACHE` for all pods. The cgroups of
 * nodes that are containers of this host are nested deeper and not read.
 */
const CGROUPS = `g=\${KUBELETADM_ROOT-}/sys/fs/cgroup
if [ -f "$g/cgroup.controllers" ]; then p=$g; m=$g; u=memory.current; s=inactive_file; else p=$g/pids; m=$g/memory; u=memory.usage_in_bytes; s=total_inactive_file; fi
for k in "$p"/*kubepods* "$p"/*/*kubepods*; do
  [ ! -d "$k" ] || find "$k" -maxdepth 2 -type d -name '*pod*' 2>/dev/null
done | while read -r d; do [ ! -r "$d/pids.current" ] || echo "pod \${d##*/} $(cat "$d/pids.current")"; done
for k in "$m"/*kubepods* "$m"/*/*kubepods*; do
  [ -r "$k/$u" ] || continue
  echo "memory $(cat "$k/$u") $(sed -n "s/^$s //p" "$k/memory.stat")"; break
done`;

const POD_CGROUPS = defineFact({ cgroups: { kind: 'command', argv: ['sh', '-c', CGROUPS] } }, ({ cgroups }) =>
  cgroups.exitCode === 0 ? parsePodCgroups(cgroups.stdout) : null,
);

/** Parses the tasks of pods and the memory of all pods. */
export function parsePodCgroups(output: string): Pick<HostRiskFacts, 'podTasks' | 'podsMemoryBytes'> {
  const podTasks: Record<string, number> = {};
  for (const [, uid = '', tasks] of output.matchAll(/^pod \S{0,100}pod([0-9a-f_-]{32,36})(?:\.slice)? (\d{1,12})$/gm))
    podTasks[uid.replaceAll('_', '-')] = Number(tasks);
  const [, usage, cache] = /^memory (\d{1,20}) (\d{1,20})$/m.exec(output) ?? [];
  return { podTasks, podsMemoryBytes: usage === undefined ? null : Math.max(0, Number(usage) - Number(cache)) };
}

const ONLINE_CPUS = defineFact(
  { online: { kind: 'file', path: '/sys/devices/system/cpu/online' } },
  ({ online }) => online?.content?.trim() || null,
);

const SWAP = defineFact({ swaps: { kind: 'file', path: '/proc/swaps' } }, ({ swaps }) =>
  // The first line is the heading.
  swaps?.content === undefined ? null : swaps.content.trim().split('\n').length > 1,
);

const MAX_OPEN_FILES = defineFact({ limit: { kind: 'file', path: '/proc/sys/fs/nr_open' } }, ({ limit }) => {
  const most = Number(limit?.content?.trim() || Number.NaN);
  return Number.isInteger(most) ? most : null;
});

const CGROUP_VERSION = defineFact(
  {
    root: { kind: 'file', path: '/sys/fs/cgroup', content: false },
    controllers: { kind: 'file', path: '/sys/fs/cgroup/cgroup.controllers', content: false },
  },
  ({ root, controllers }) => (root === null ? null : controllers === null ? (1 as const) : (2 as const)),
);

function managerPolicies(rootDir: string): Fact<HostRiskFacts['managerPolicies']> {
  return mapFact(managerStateTexts(rootDir), (texts) =>
    Object.fromEntries(
      Object.entries(MANAGER_STATES).flatMap(([field, name]) => {
        const policy = storedPolicy(texts.get(`${rootDir}/${name}`) ?? '');
        return policy === null ? [] : [[field, policy]];
      }),
    ),
  );
}

const KERNEL_FILES = new Map(Object.keys(KERNEL_SETTINGS).map((name) => [`/proc/sys/${name.replaceAll('.', '/')}`, name]));

const SYSCTLS = mapFact(fileFacts([...KERNEL_FILES.keys()]), (files) =>
  Object.fromEntries(
    [...files].flatMap(([path, file]) => (file?.content === undefined ? [] : [[KERNEL_FILES.get(path) ?? '', file.content.trim()]])),
  ),
);
