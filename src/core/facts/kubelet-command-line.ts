import { defineFact } from './fact.ts';

/** The process of the kubelet's unit. */
export interface KubeletCommandLine {
  readonly pid: number;
  /** The program first. */
  readonly argv: readonly string[];
}

const SCRIPT = `p=$(systemctl show kubelet --property=MainPID 2>/dev/null); p=\${p#MainPID=}
case $p in ''|0|*[!0-9]*) exit 3;; esac
printf '%s\\n' "$p"; cat "/proc/$p/cmdline"`;

/**
 * What the kubelet that runs was started with; null when none runs. Cheaper than `kubeletProcess`, which starts the kubelet's program to ask for its version:
 * for who looks once a second.
 */
export const kubeletCommandLine = defineFact(
  { found: { kind: 'command', argv: ['sh', '-c', SCRIPT] } },
  ({ found }): KubeletCommandLine | null => {
    const match = found.exitCode === 0 ? /^([1-9][0-9]*)\n([\s\S]+)$/.exec(found.stdout) : null;
    return match === null ? null : { pid: Number(match[1]), argv: (match[2] as string).replace(/\0$/, '').split('\0') };
  },
);
