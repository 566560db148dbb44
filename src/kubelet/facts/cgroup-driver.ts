import { defineFact, type Fact } from '../../host/facts/fact.ts';
import type { CommandFact, FactQuery } from '../../host/facts/query.ts';
import { criCall, grpcStatus } from './cri-socket.ts';

export type CgroupDriver = 'systemd' | 'cgroupfs';

/** Cgroup driver of the container runtime, with the place of its configuration. */
export interface RuntimeCgroupDriver {
  readonly driver: CgroupDriver;
  /** Source of the value, e.g. `containerd config dump`. */
  readonly source: string;
  /** The required setting, e.g. `SystemdCgroup = true in /etc/containerd/config.toml`. */
  readonly change: string;
}

/**
 * The reason why pods would not start with a driver; null: the runtime uses the same driver, or its driver is
 * unknown.
 */
export function cgroupDriverIssue(desired: unknown, runtime: RuntimeCgroupDriver | null): string | null {
  if (runtime === null || desired === runtime.driver) return null;
  return `cgroupDriver is ${String(desired)}, but the container runtime uses ${runtime.driver} (${runtime.source})`;
}

type Asked = readonly [source: string, argv: readonly string[], parse: (output: string) => CgroupDriver | null];

/** Keeps a hung daemon from delaying the other facts. */
const LIMIT = ['timeout', '10'];

/** Commands of each runtime that show its driver, the best first. */
const TOOLS = {
  containerd: [['containerd config dump', ['containerd', 'config', 'dump'], parseContainerdConfig]],
  crio: [
    ['crio status config', [...LIMIT, 'crio', 'status', 'config'], parseCrioConfig],
    ['crio config', ['crio', 'config'], parseCrioConfig],
  ],
  docker: [['docker info', [...LIMIT, 'docker', 'info', '--format', '{{.CgroupDriver}}'], parseDockerInfo]],
} satisfies Readonly<Record<string, readonly Asked[]>>;

/**
 * Reads the cgroup driver of the runtime behind a CRI socket: first by CRI (RuntimeConfig, with crictl), then
 * by its own tools. Null if unknown.
 */
export function runtimeCgroupDriver(criSocket: string): Fact<RuntimeCgroupDriver | null> {
  const runtime = runtimeNameOf(criSocket);
  const asked: readonly Asked[] = [[CRICTL, crictlRuntimeConfig(criSocket), parseCrictlRuntimeConfig], ...TOOLS[runtime]];
  const queries: Record<string, FactQuery> = {};
  for (const [source, argv] of asked) queries[source] = toolQuery(argv);
  return defineFact(queries, (answers) => {
    for (const [source, , parse] of asked) {
      const { exitCode, stdout } = answers[source] as CommandFact;
      const driver = exitCode === 0 ? parse(stdout) : null;
      if (driver !== null) return { driver, source, change: changeLine(runtime, driver === 'systemd' ? 'cgroupfs' : 'systemd') };
    }
    return null;
  });
}

/**
 * Whether the runtime behind a CRI socket implements RuntimeConfig, from which a kubelet learns its cgroup
 * driver: by calling it, otherwise by containerd's configuration version, which is 3 from containerd 2.0, the
 * first with that method. Null if unknown.
 */
export function runtimeConfigSupport(criSocket: string): Fact<boolean | null> {
  const isContainerd = runtimeNameOf(criSocket) === 'containerd';
  const [source, argv] = TOOLS.containerd[0] as Asked;
  const queries: Record<string, FactQuery> = { [CALL]: criCall(criSocket, 'RuntimeConfig') };
  if (isContainerd) queries[source] = toolQuery(argv);
  return defineFact(queries, (answers) => {
    const status = grpcStatus((answers[CALL] as CommandFact).stdout);
    if (status === '0' || status === '12') return status === '0';
    if (!isContainerd) return null;
    const { exitCode, stdout } = answers[source] as CommandFact;
    const format = exitCode === 0 ? /^version = (\d{1,3})$/m.exec(stdout)?.[1] : undefined;
    return format === undefined ? null : Number(format) >= 3;
  });
}

/** Prints the type of the file system of the cgroups. */
export const CGROUP_VERSION = { kind: 'command', argv: ['stat', '-f', '-c', '%T', '/sys/fs/cgroup'] } as const;

/** The cgroup version of the host; null: unknown. */
export function cgroupVersionOf({ exitCode, stdout }: CommandFact): 1 | 2 | null {
  return exitCode === 0 ? (stdout.trim() === 'cgroup2fs' ? 2 : 1) : null;
}

const CALL = 'RuntimeConfig';
const CRICTL = 'crictl runtime-config';

/** The tools of runtimes take up to 50 ms. */
function toolQuery(argv: readonly string[]): FactQuery {
  return { kind: 'command', argv, isParallel: true };
}

/** Without an existing socket crictl would wait for its timeout. */
function crictlRuntimeConfig(criSocket: string): readonly string[] {
  const script = '[ -S "${1#unix://}" ] && exec crictl --runtime-endpoint "$1" --timeout 5s runtime-config';
  return ['sh', '-c', script, 'sh', criSocket];
}

function runtimeNameOf(criSocket: string): keyof typeof TOOLS {
  return /crio/.test(criSocket) ? 'crio' : /docker/.test(criSocket) ? 'docker' : 'containerd';
}

/** Parses `cgroup driver: SYSTEMD` of crictl 1.30 and later. */
export function parseCrictlRuntimeConfig(output: string): CgroupDriver | null {
  return parseDriver(/cgroup ?driver"?:\s{0,8}"?(\w{1,32})/i.exec(output)?.[1] ?? '');
}

/**
 * Parses `SystemdCgroup` in the effective containerd configuration (format versions 1, 2 and 3): of the
 * default runtime, or, if that is not a runc runtime, of the first other one by name; missing means cgroupfs.
 * Null if unknown: the CRI plugin is disabled, the format is unknown, or containerd chooses by whether
 * systemd runs.
 * @see containerd docs/cri/config.md, "Cgroup Driver"
 */
export function parseContainerdConfig(toml: string): CgroupDriver | null {
  const runtimes = containerdRuntimes(toml);
  const fallback = /^[ \t]*default_runtime_name[ \t]*=[ \t]*["']([^"'\n]+)["']/m.exec(toml)?.[1] ?? 'runc';
  const names = [fallback, ...[...runtimes.keys()].filter((name) => name !== fallback).sort()];
  const chosen = names.map((name) => runtimes.get(name)).find((text) => text !== undefined && isRunc(text));
  if (chosen === undefined) return null;
  const old = /^[ \t]*systemd_cgroup[ \t]*=[ \t]*true/m.test(toml);
  return /^[ \t]*SystemdCgroup[ \t]*=[ \t]*true/m.test(chosen) || old ? 'systemd' : 'cgroupfs';
}

const RUNTIMES = '.containerd.runtimes.';

/** The name in brackets of a line that begins a section, with or without a trailing comment; null for other lines. */
function headingOf(line: string): string | null {
  const text = line.trim();
  const end = /\]\s{0,64}#/.exec(text)?.index ?? text.lastIndexOf(']');
  return text.startsWith('[') && end > 1 && /^\]\s*(?:#.*)?$/.test(text.slice(end)) ? text.slice(1, end) : null;
}

/** The lines of each runtime's section and of its options, for any plugin name. */
function containerdRuntimes(toml: string): ReadonlyMap<string, string> {
  const runtimes = new Map<string, string>();
  let name: string | null = null;
  for (const line of toml.split('\n')) {
    const heading = headingOf(line);
    if (heading !== null) {
      const match = /^(?:"([^"]+)"|'([^']+)'|([\w-]+))(?:\.options)?$/.exec(heading.slice(heading.lastIndexOf(RUNTIMES) + RUNTIMES.length));
      name = match && heading.includes(RUNTIMES) ? (match[1] ?? match[2] ?? (match[3] as string)) : null;
      if (name !== null) runtimes.set(name, runtimes.get(name) ?? '');
    } else if (name !== null) runtimes.set(name, `${runtimes.get(name)}${line}\n`);
  }
  return runtimes;
}

/** A section without a type is of type runc, containerd's default. */
function isRunc(section: string): boolean {
  const type = /^[ \t]*runtime_type[ \t]*=[ \t]*["']([^"'\n]*)["']/m.exec(section)?.[1] ?? '';
  return type === '' || /^io\.containerd\.(?:runc\.v\d|runtime\.v1\.linux)$/.test(type);
}

/** Parses `cgroup_manager` of CRI-O; systemd, its default, if unset. */
export function parseCrioConfig(toml: string): CgroupDriver | null {
  const set = /^[ \t]*cgroup_manager[ \t]*=[ \t]*["'](\w+)["']/m.exec(toml)?.[1];
  return set === undefined ? (/^[ \t]*\[crio\.runtime\]/m.test(toml) ? 'systemd' : null) : parseDriver(set);
}

function parseDockerInfo(output: string): CgroupDriver | null {
  return parseDriver(/^(?:systemd|cgroupfs)$/im.exec(output)?.[0] ?? '');
}

function parseDriver(word: string): CgroupDriver | null {
  const lower = word.trim().toLowerCase();
  return lower === 'systemd' || lower === 'cgroupfs' ? lower : null;
}

function changeLine(runtime: string, to: CgroupDriver): string {
  if (runtime === 'crio') return `cgroup_manager = "${to}" under [crio.runtime] in /etc/crio/crio.conf`;
  if (runtime === 'docker') return `"exec-opts": ["native.cgroupdriver=${to}"] in /etc/docker/daemon.json`;
  return `SystemdCgroup = ${to === 'systemd'} under the runc runtime's options in /etc/containerd/config.toml`;
}
