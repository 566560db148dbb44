import { defineFact, type Fact } from '../../host/facts/fact.ts';
import type { CommandFact, FactQuery } from '../../host/facts/query.ts';

export type CgroupDriver = 'systemd' | 'cgroupfs';

/** What the container runtime says about its cgroup driver, and where to change it. */
export interface RuntimeCgroupDriver {
  readonly driver: CgroupDriver;
  /** Which question gave it, e.g. `containerd config dump`. */
  readonly source: string;
  /** The line to change, e.g. `SystemdCgroup = true in /etc/containerd/config.toml`. */
  readonly change: string;
}

/** Why pods would not start with a driver; null: the runtime has the same, or does not tell. */
export function cgroupDriverIssue(desired: unknown, runtime: RuntimeCgroupDriver | null): string | null {
  if (runtime === null || desired === runtime.driver) return null;
  return `cgroupDriver is ${String(desired)}, but the container runtime uses ${runtime.driver} (${runtime.source})`;
}

type RuntimeName = 'containerd' | 'crio' | 'docker';
type Asked = readonly [source: string, argv: readonly string[], parse: (output: string) => CgroupDriver | null];

/** A daemon that hangs must not hold up everything else that is asked. */
const LIMIT = ['timeout', '10'];

/** What to ask each runtime by its own means, the best source first. */
const TOOLS: Readonly<Record<RuntimeName, readonly Asked[]>> = {
  containerd: [['containerd config dump', ['containerd', 'config', 'dump'], parseContainerdConfig]],
  crio: [
    ['crio status config', [...LIMIT, 'crio', 'status', 'config'], parseCrioConfig],
    ['crio config', ['crio', 'config'], parseCrioConfig],
  ],
  docker: [['docker info', [...LIMIT, 'docker', 'info', '--format', '{{.CgroupDriver}}'], parseDriver]],
};

/**
 * Asks the runtime behind a CRI socket for its cgroup driver: first over CRI (RuntimeConfig, through crictl), then its own tools.
 * Null when nothing could tell.
 */
export function runtimeCgroupDriver(criSocket: string): Fact<RuntimeCgroupDriver | null> {
  const runtime = runtimeNameOf(criSocket);
  const asked: readonly Asked[] = [[CRICTL, crictlRuntimeConfig(criSocket), parseCrictlRuntimeConfig], ...TOOLS[runtime]];
  const queries: Record<string, FactQuery> = {};
  for (const [source, argv] of asked) queries[source] = { kind: 'command', argv };
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
 * Whether the runtime behind a CRI socket implements RuntimeConfig, by which a kubelet learns its cgroup driver: as crictl reports, else by containerd's
 * version, whose configuration has format 3 from containerd 2.0 on, the first with that method. Null when nothing tells.
 */
export function runtimeConfigSupport(criSocket: string): Fact<boolean | null> {
  const isContainerd = runtimeNameOf(criSocket) === 'containerd';
  const dump = TOOLS.containerd[0] as Asked;
  const queries: Record<string, FactQuery> = { [CRICTL]: { kind: 'command', argv: crictlRuntimeConfig(criSocket) } };
  if (isContainerd) queries[dump[0]] = { kind: 'command', argv: dump[1] };
  return defineFact(queries, (answers) => {
    const reported = answers[CRICTL] as CommandFact;
    if (reported.exitCode === 0) return true;
    if (/code = Unimplemented|unknown method RuntimeConfig/.test(reported.stderr)) return false;
    const { exitCode, stdout } = isContainerd ? (answers[dump[0]] as CommandFact) : reported;
    const format = exitCode === 0 ? /^version = (\d{1,3})$/m.exec(stdout)?.[1] : undefined;
    return format === undefined ? null : Number(format) >= 3;
  });
}

const CRICTL = 'crictl runtime-config';

/** Without the socket crictl would wait for its time-out. */
function crictlRuntimeConfig(criSocket: string): readonly string[] {
  const script = '[ -S "${1#unix://}" ] && exec crictl --runtime-endpoint "$1" --timeout 5s runtime-config';
  return ['sh', '-c', script, 'sh', criSocket];
}

function runtimeNameOf(criSocket: string): RuntimeName {
  return /crio/.test(criSocket) ? 'crio' : /docker/.test(criSocket) ? 'docker' : 'containerd';
}

/** `cgroup driver: SYSTEMD` of crictl 1.30 and later. */
export function parseCrictlRuntimeConfig(output: string): CgroupDriver | null {
  return parseDriver(/cgroup ?driver"?:\s{0,8}"?(\w{1,32})/i.exec(output)?.[1] ?? '');
}

/**
 * `SystemdCgroup` in the effective containerd configuration (versions 1, 2 and 3 of its format): that of the default runtime, or of the first other one
 * by name when the default is none of runc's kind; absent means cgroupfs. Null when no runtime tells: the CRI plugin is disabled, the format is unknown,
 * or containerd goes by whether systemd runs.
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

/** What stands in the brackets of a line that begins a section, with or without a comment behind; null for another line. */
function headingOf(line: string): string | null {
  const text = line.trim();
  const end = /\]\s{0,64}#/.exec(text)?.index ?? text.lastIndexOf(']');
  return text.startsWith('[') && end > 1 && /^\]\s*(?:#.*)?$/.test(text.slice(end)) ? text.slice(1, end) : null;
}

/** Of each runtime the lines of its section and of its options, whatever the plugin is called. */
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

/** A section that names no type takes runc's: containerd fills it in when it starts. */
function isRunc(section: string): boolean {
  const type = /^[ \t]*runtime_type[ \t]*=[ \t]*["']([^"'\n]*)["']/m.exec(section)?.[1] ?? '';
  return type === '' || /^io\.containerd\.(?:runc\.v\d|runtime\.v1\.linux)$/.test(type);
}

/** `cgroup_manager` of CRI-O; systemd when unset, its default. */
export function parseCrioConfig(toml: string): CgroupDriver | null {
  const set = /^[ \t]*cgroup_manager[ \t]*=[ \t]*["'](\w+)["']/m.exec(toml)?.[1];
  return set === undefined ? (/^[ \t]*\[crio\.runtime\]/m.test(toml) ? 'systemd' : null) : parseDriver(set);
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
