import { crashReason } from '../../base/text/crash-reason.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { defineFact } from '../../host/facts/fact.ts';
import { KUBELET_PROGRAM } from '../../kube/well-known.ts';

/** Paths that the templates of the unit can hold. */
const UNIT_WORD = /^[^\s"'\\;$]+$/;

/**
 * The program of the kubelet's unit or, before its first start, of its running process, outside the PATH: path and version.
 * A program of another name may do anything with `--version`.
 */
const UNIT_PROGRAM_SCRIPT = `x=$(systemctl show kubelet --property=ExecStart --property=MainPID 2>/dev/null </dev/null) || exit 3
p=$(printf '%s\\n' "$x" | sed -n 's/^ExecStart={ path=\\(.*\\) ; argv\\[\\]=.*/\\1/p' | tail -n 1)
case $p in /*/kubelet) ;; *) m=$(printf '%s\\n' "$x" | sed -n 's/^MainPID=//p'); p=$(readlink "/proc/$m/exe" 2>/dev/null);; esac
case $p in /*/kubelet) ;; *) exit 3;; esac
[ -x "$p" ] && [ "$p" != "$(command -v kubelet)" ] || exit 3
printf '%s\\n' "$p"; "$p" --version 2>&1 </dev/null`;

/**
 * The kubelet of the host: the program of its unit, wherever it is, else the one on the PATH. Null: not installed; `error`:
 * no version in its output, or a path that the unit cannot hold.
 */
export const kubeletBinary = defineFact(
  {
    version: { kind: 'command', argv: ['kubelet', '--version'], isParallel: true },
    path: { kind: 'command', argv: ['sh', '-c', 'command -v kubelet'] },
    packaged: { kind: 'file', path: KUBELET_PROGRAM, content: false },
    ofUnit: { kind: 'command', argv: ['sh', '-c', UNIT_PROGRAM_SCRIPT] },
  },
  ({ version, path, packaged, ofUnit }) => {
    const [program = '', ...output] = ofUnit.exitCode === 0 ? ofUnit.stdout.split('\n') : [];
    if (program.startsWith('/') && output.join('') !== '') return binaryAt(program, output.join('\n'), ofUnit.exitCode);
    if (path.exitCode !== 0 && version.exitCode !== 0) return null;
    const onPath = path.stdout.trim();
    const isFound = parseKubeletVersion(version.stdout) !== null;
    return binaryAt(
      isFound && packaged !== null ? KUBELET_PROGRAM : onPath || (isFound ? KUBELET_PROGRAM : 'kubelet'),
      version.stdout,
      version.exitCode,
    );
  },
);

/** For example v1.36.2 at /usr/bin/kubelet. */
function binaryAt(
  path: string,
  output: string,
  exitCode: number | null,
): { readonly version: string; readonly path: string } | { readonly error: string } {
  const version = parseKubeletVersion(output);
  if (version === null) {
    const reported = crashReason(output);
    return { error: `${path} --version ${reported === '' ? `exited with code ${exitCode}` : `printed: ${reported}`}` };
  }
  if (!UNIT_WORD.test(path)) return { error: `${quoteValue(path)}: the unit of the kubelet cannot start a program at this path` };
  return { version, path };
}

/**
 * Reads `kubelet --version`.
 * @returns e.g. `v1.36.2`, or null
 * @see kubeadm 1.36 preflight/utils.go (the same pattern)
 */
export function parseKubeletVersion(output: string): string | null {
  for (const line of output.split('\n')) {
    const version = /^Kubernetes (v(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:[-+.A-Za-z_][-\w.+]*)?)$/.exec(line.trim())?.[1];
    if (version !== undefined) return version;
  }
  return null;
}
