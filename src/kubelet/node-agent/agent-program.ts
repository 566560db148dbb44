import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { LargeFile } from '../../host/operation/large-file.ts';

/** Default directory of the agent program. */
export const PROGRAM_DIRECTORY = '/usr/local/lib/kubeletadm';
/** Directory with all data the agent needs to start a kubelet without an API server. Root only. */
export const AGENT_DIRECTORY = '/var/lib/kubelet/kubeletadm-agent';

/** The oldest Node.js version that runs the bundle. */
export const OLDEST_NODEJS_VERSION: readonly [number, number] = [20, 19];

/** `e_machine` of ELF files, named as by `uname -m`. */
const MACHINES: Readonly<Record<number, string>> = {
  40: 'armv7l',
  62: 'x86_64',
  183: 'aarch64',
  22: 's390x',
  21: 'ppc64le',
  243: 'riscv64',
};

/**
 * Detects the type of a program from its first bytes: the bundle, which needs Node.js on the host, or an executable for one
 * machine type (`uname -m`).
 * @see elf(5)
 */
export function programKind({
  head,
}: Pick<LargeFile, 'head'>): { readonly kind: 'executable'; readonly machine: string } | { readonly kind: 'bundle' | 'other' } {
  if (head.startsWith('\x7fELF')) {
    const isBig = head.charCodeAt(5) === 2;
    const [first, second] = [head.charCodeAt(18), head.charCodeAt(19)];
    return { kind: 'executable', machine: MACHINES[isBig ? first * 256 + second : second * 256 + first] ?? 'unknown' };
  }
  return /^#!.*\bnode\b/.test(head) ? { kind: 'bundle' } : { kind: 'other' };
}

/** The path of a program on a host. The name contains its hash, so that a running program is never overwritten. */
export function programPath(
  directory: string,
  { sha256 }: Pick<LargeFile, 'sha256'>,
  kind: ReturnType<typeof programKind>['kind'],
): string {
  return `${trimTrailing(directory, '/')}/kubeletadm-${sha256.slice(0, 12)}${kind === 'bundle' ? '.mjs' : ''}`;
}

/** Whether a file name in the directory belongs to an installed agent program. */
export function isProgramName(name: string): boolean {
  return /^kubeletadm-[0-9a-f]{12}(?:\.mjs)?$/.test(name);
}

/** Whether a version printed by `node --version` is recent enough. */
export function isSupportedNodeJs(version: string): boolean {
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version) ?? [];
  const [desiredMajor, desiredMinor] = OLDEST_NODEJS_VERSION;
  return Number(major) > desiredMajor || (Number(major) === desiredMajor && Number(minor) >= desiredMinor);
}
