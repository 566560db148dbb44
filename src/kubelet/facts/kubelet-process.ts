import { defineFact } from '../../host/facts/fact.ts';
import { parseKubeletVersion } from './kubelet-version.ts';

/** The kubelet that runs. */
export interface KubeletProcess {
  readonly pid: number;
  /** Its command line, the program first. */
  readonly argv: readonly string[];
  /** What the running program says, e.g. `v1.36.2`; the one on disk may have been replaced since. Null when it does not tell. */
  readonly version: string | null;
}

/** The process of the unit, else the oldest that is called kubelet. Its words end with NUL, as /proc has them. */
const SCRIPT = `p=$(systemctl show kubelet --property=MainPID 2>/dev/null); p=\${p#MainPID=}
case $p in ''|0) p=$(pidof kubelet 2>/dev/null); p=\${p##* };; esac
case $p in ''|*[!0-9]*) exit 3;; esac
v=$("/proc/$p/exe" --version 2>/dev/null </dev/null | head -n 1)
printf '%s\\n%s\\n' "$p" "$v"; cat "/proc/$p/cmdline"`;

/** The running kubelet; null when none runs. */
export const kubeletProcess = defineFact({ found: { kind: 'command', argv: ['sh', '-c', SCRIPT] } }, ({ found }): KubeletProcess | null =>
  found.exitCode === 0 ? parseKubeletProcess(found.stdout) : null,
);

/** Reads the process id, the version and the words of the command line; null when they are not there. */
export function parseKubeletProcess(output: string): KubeletProcess | null {
  const match = /^([1-9][0-9]*)\n([^\n\0]*)\n([\s\S]+)$/.exec(output);
  if (match === null) return null;
  const argv = (match[3] as string).replace(/\0$/, '').split('\0');
  return { pid: Number(match[1]), argv, version: parseKubeletVersion(match[2] as string) };
}
