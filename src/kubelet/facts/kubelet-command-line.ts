import { defineFact } from '../../host/facts/fact.ts';

/** The process of the kubelet's unit. */
export interface KubeletCommandLine {
  readonly pid: number;
  /** The program first. */
  readonly argv: readonly string[];
  /** How long ago it was started, by a clock that does not jump; null where the kernel does not tell. */
  readonly ageMs: number | null;
}

const SCRIPT = `p=$(systemctl show kubelet --property=MainPID 2>/dev/null); p=\${p#MainPID=}
case $p in ''|0|*[!0-9]*) exit 3;; esac
t() { s=$(cat "/proc/$1/stat" 2>/dev/null) || return 0; set -- \${s##*) }; printf %s "\${20}"; }
printf '%s %s %s\\n' "$p" "$(t "$p")" "$(t self)"; cat "/proc/$p/cmdline"`;

/** The kernel counts them in hundredths of a second, whatever its own clock (USER_HZ). @see proc_pid_stat(5) */
const MS_A_TICK = 10;

/**
 * What the kubelet that runs was started with; null when none runs. Cheaper than `kubeletProcess`, which starts the kubelet's program to ask for its version:
 * for who looks once a second.
 */
export const kubeletCommandLine = defineFact(
  { found: { kind: 'command', argv: ['sh', '-c', SCRIPT] } },
  ({ found }): KubeletCommandLine | null => {
    const match = found.exitCode === 0 ? /^([1-9][0-9]*)(?: ([0-9]*) ([0-9]*))?\n([\s\S]+)$/.exec(found.stdout) : null;
    if (match === null) return null;
    const [, pid, started = '', now = '', argv = ''] = match;
    const ageMs = started === '' || now === '' ? null : Math.max(0, Number(now) - Number(started)) * MS_A_TICK;
    // Between fork and exec it is still systemd, which calls itself (kubelet).
    return argv.startsWith('(') ? null : { pid: Number(pid), argv: argv.replace(/\0$/, '').split('\0'), ageMs };
  },
);
