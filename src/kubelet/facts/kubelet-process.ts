import { defineFact } from '../../host/facts/fact.ts';
import { parseKubeletVersion } from './kubelet-version.ts';

/** The running kubelet. */
export interface KubeletProcess {
  readonly pid: number;
  /** Command line, starting with the program. */
  readonly argv: readonly string[];
  /** Version of the running program, e.g. `v1.36.2`; the file on disk may be newer. Null if unknown. */
  readonly version: string | null;
}

/** The unit's process, otherwise the oldest process called kubelet. Words end with NUL, as in /proc. */
const SCRIPT = `p=$(systemctl show kubelet --property=MainPID 2>/dev/null); p=\${p#MainPID=}
case $p in ''|0) p=$(pidof kubelet 2>/dev/null); p=\${p##* };; esac
case $p in ''|*[!0-9]*) exit 3;; esac
v=$("/proc/$p/exe" --version 2>/dev/null </dev/null | head -n 1)
printf '%s\\n%s\\n' "$p" "$v"; cat "/proc/$p/cmdline"`;

/** The running kubelet; null when none runs. */
export const kubeletProcess = defineFact({ found: { kind: 'command', argv: ['sh', '-c', SCRIPT] } }, ({ found }): KubeletProcess | null =>
  found.exitCode === 0 ? parseKubeletProcess(found.stdout) : null,
);

/** Parses process ID, version and command line; null if missing. */
export function parseKubeletProcess(output: string): KubeletProcess | null {
  const match = /^([1-9][0-9]*)\n([^\n\0]*)\n([\s\S]+)$/.exec(output);
  if (match === null) return null;
  const argv = (match[3] as string).replace(/\0$/, '').split('\0');
  return { pid: Number(match[1]), argv, version: parseKubeletVersion(match[2] as string) };
}
