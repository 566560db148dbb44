import { crashReason } from '../../base/text/crash-reason.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { defineFact } from '../../host/facts/fact.ts';
import { KUBELET_PROGRAM } from '../../kube/well-known.ts';

export interface KubeletBinary {
  /** e.g. `v1.36.2`. */
  readonly version: string;
  /** Path, e.g. `/usr/bin/kubelet`. */
  readonly path: string;
}

/** Paths that the templates of the unit can hold. */
const UNIT_WORD = /^[^\s"'\\;$]+$/;

/**
 * The kubelet on the host's PATH; null: not installed; `error`: no version in its output, or a path that the
 * unit cannot hold.
 */
export const kubeletBinary = defineFact(
  {
    version: { kind: 'command', argv: ['kubelet', '--version'], isParallel: true },
    path: { kind: 'command', argv: ['sh', '-c', 'command -v kubelet'] },
    packaged: { kind: 'file', path: KUBELET_PROGRAM, content: false },
  },
  ({ version, path, packaged }): KubeletBinary | { readonly error: string } | null => {
    if (path.exitCode !== 0 && version.exitCode !== 0) return null;
    const found = parseKubeletVersion(version.stdout);
    if (found !== null) {
      const program = packaged === null ? path.stdout.trim() || KUBELET_PROGRAM : KUBELET_PROGRAM;
      if (!UNIT_WORD.test(program)) return { error: `${quoteValue(program)}: the unit of the kubelet cannot start a program at this path` };
      return { version: found, path: program };
    }
    const reported = crashReason(version.stdout);
    return {
      error: `${path.stdout.trim() || 'kubelet'} --version ${reported === '' ? `exited with code ${version.exitCode}` : `printed: ${reported}`}`,
    };
  },
);

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
