import { defineFact } from '../../host/facts/fact.ts';
import { parseKubeletVersion } from './kubelet-version.ts';

/** The running kubelet, with its version. */
export interface KubeletProcess {
  readonly pid: number;
  /** Command line, starting with the program. */
  readonly argv: readonly string[];
  /** Version of the running program, e.g. `v1.36.2`; the file on disk may be newer. Null if unknown. */
  readonly version: string | null;
}

/**
 * Replaces the process of a unit that starts the kubelet from a script by its child, the kubelet. Builtins of the shell only,
 * because the agent runs this every second.
 */
const SKIP_WRAPPER = `read -r c <"/proc/$p/comm" 2>/dev/null
case $c in kubelet) ;; *) read -r k <"/proc/$p/task/$p/children" 2>/dev/null
for q in $k; do read -r c <"/proc/$q/comm" 2>/dev/null; case $c in kubelet) p=$q; break;; esac; done;; esac`;

/**
 * The process of the unit; without systemd the oldest process called kubelet. Other processes of that name may be those
 * that this program starts for `kubelet --version`. Words end with NUL, as in /proc.
 */
const PROCESS_SCRIPT = `p=$(systemctl show kubelet --property=MainPID 2>/dev/null); p=\${p#MainPID=}
case $p in '') p=$(pidof kubelet 2>/dev/null); p=\${p##* };; esac
case $p in ''|0|*[!0-9]*) exit 3;; esac
${SKIP_WRAPPER}
v=$("/proc/$p/exe" --version 2>/dev/null </dev/null | head -n 1)
printf '%s\\n%s\\n' "$p" "$v"; cat "/proc/$p/cmdline"`;

/** The running kubelet; null when none runs. Runs the kubelet binary for its version. */
export const kubeletProcess = defineFact(
  { found: { kind: 'command', argv: ['sh', '-c', PROCESS_SCRIPT] } },
  ({ found }): KubeletProcess | null => (found.exitCode === 0 ? parseKubeletProcess(found.stdout) : null),
);

/** Parses process ID, version and command line; null if missing. */
export function parseKubeletProcess(output: string): KubeletProcess | null {
  const match = /^([1-9][0-9]*)\n([^\n\0]*)\n([\s\S]+)$/.exec(output);
  if (match === null) return null;
  const argv = (match[3] as string).replace(/\0$/, '').split('\0');
  return { pid: Number(match[1]), argv, version: parseKubeletVersion(match[2] as string) };
}

/** The process of the kubelet's unit, with its age. */
export interface KubeletCommandLine {
  readonly pid: number;
  /** Starting with the program. */
  readonly argv: readonly string[];
  /** Age by the monotonic clock; null if unknown. */
  readonly ageMs: number | null;
  /** CPU time that it and its ended children have used since its start; null if unknown. */
  readonly cpuMs: number | null;
}

const COMMAND_LINE_SCRIPT = `p=$(systemctl show kubelet --property=MainPID 2>/dev/null); p=\${p#MainPID=}
case $p in ''|0|*[!0-9]*) exit 3;; esac
${SKIP_WRAPPER}
t() { s=$(cat "/proc/$1/stat" 2>/dev/null) || return 0; set -- \${s##*) }; printf '%s %s' "\${20}" "$((\${12}+\${13}+\${14}+\${15}))"; }
a=$(t "$p"); b=$(t self); printf '%s %s %s %s\\n' "$p" "\${a% *}" "\${b% *}" "\${a#* }"; cat "/proc/$p/cmdline"`;

/**
 * Process times are in hundredths of a second, independent of the kernel's clock (USER_HZ).
 * @see proc_pid_stat(5)
 */
const MS_A_TICK = 10;

/**
 * The command line of the running kubelet; null if none runs. Cheaper than `kubeletProcess`, which runs the
 * kubelet binary for its version, and therefore suited for checks every second.
 */
export const kubeletCommandLine = defineFact(
  { found: { kind: 'command', argv: ['sh', '-c', COMMAND_LINE_SCRIPT] } },
  ({ found }): KubeletCommandLine | null => {
    const match = found.exitCode === 0 ? /^([1-9][0-9]*)(?: ([0-9]*) ([0-9]*)(?: ([0-9]*))?)?\n([\s\S]+)$/.exec(found.stdout) : null;
    if (match === null) return null;
    const [, pid, started = '', now = '', cpu = '', argv = ''] = match;
    const ageMs = started === '' || now === '' ? null : Math.max(0, Number(now) - Number(started)) * MS_A_TICK;
    const cpuMs = cpu === '' ? null : Number(cpu) * MS_A_TICK;
    // Between fork and exec the process is still systemd, with the name (kubelet).
    return argv.startsWith('(') ? null : { pid: Number(pid), argv: argv.replace(/\0$/, '').split('\0'), ageMs, cpuMs };
  },
);
