import { defineFact } from '../../host/facts/fact.ts';

/** The process of the kubelet's unit. */
export interface KubeletCommandLine {
  readonly pid: number;
  /** Starting with the program. */
  readonly argv: readonly string[];
  /** Age by the monotonic clock; null if unknown. */
  readonly ageMs: number | null;
}

const SCRIPT = `p=$(systemctl show kubelet --property=MainPID 2>/dev/null); p=\${p#MainPID=}
case $p in ''|0|*[!0-9]*) exit 3;; esac
t() { s=$(cat "/proc/$1/stat" 2>/dev/null) || return 0; set -- \${s##*) }; printf %s "\${20}"; }
printf '%s %s %s\\n' "$p" "$(t "$p")" "$(t self)"; cat "/proc/$p/cmdline"`;

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
  { found: { kind: 'command', argv: ['sh', '-c', SCRIPT] } },
  ({ found }): KubeletCommandLine | null => {
    const match = found.exitCode === 0 ? /^([1-9][0-9]*)(?: ([0-9]*) ([0-9]*))?\n([\s\S]+)$/.exec(found.stdout) : null;
    if (match === null) return null;
    const [, pid, started = '', now = '', argv = ''] = match;
    const ageMs = started === '' || now === '' ? null : Math.max(0, Number(now) - Number(started)) * MS_A_TICK;
    // Between fork and exec the process is still systemd, with the name (kubelet).
    return argv.startsWith('(') ? null : { pid: Number(pid), argv: argv.replace(/\0$/, '').split('\0'), ageMs };
  },
);
