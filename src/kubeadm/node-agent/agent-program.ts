import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { LargeFile } from '../../host/plan/large-file.ts';

/** Where the agent's program is, unless another place is named. */
export const PROGRAM_DIRECTORY = '/usr/local/lib/kubeletadm';

/** The oldest Node.js that runs the bundle. */
export const OLDEST_NODE: readonly [number, number] = [20, 19];

/** What kind of program a file is: the bundle, which needs Node.js on the host, or an executable for machines of a kind (`uname -m`). */
export type ProgramKind =
  | { readonly kind: 'bundle' }
  | { readonly kind: 'executable'; readonly machine: string }
  | { readonly kind: 'other' };

/** `e_machine` of ELF files, as `uname -m` names them. */
const MACHINES: Readonly<Record<number, string>> = {
  40: 'armv7l',
  62: 'x86_64',
  183: 'aarch64',
  22: 's390x',
  21: 'ppc64le',
  243: 'riscv64',
};

/** Tells by its first bytes what a program is. @see elf(5) */
export function programKind({ head }: Pick<LargeFile, 'head'>): ProgramKind {
  if (head.startsWith('\x7fELF')) {
    const isBig = head.charCodeAt(5) === 2;
    const [first, second] = [head.charCodeAt(18), head.charCodeAt(19)];
    return { kind: 'executable', machine: MACHINES[isBig ? first * 256 + second : second * 256 + first] ?? 'unknown' };
  }
  return /^#!.*\bnode\b/.test(head) ? { kind: 'bundle' } : { kind: 'other' };
}

/** The path of a program on a host. Its name says what is in it: one that runs is never written over. */
export function programPath(directory: string, { sha256 }: Pick<LargeFile, 'sha256'>, kind: ProgramKind['kind']): string {
  return `${trimTrailing(directory, '/')}/kubeletadm-${sha256.slice(0, 12)}${kind === 'bundle' ? '.mjs' : ''}`;
}

/** Whether a name in the directory is of a program that was put there. */
export function isProgramName(name: string): boolean {
  return /^kubeletadm-[0-9a-f]{12}(?:\.mjs)?$/.test(name);
}

/** Whether what `node --version` says is enough. */
export function isNodeEnough(version: string): boolean {
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version) ?? [];
  const [desiredMajor, desiredMinor] = OLDEST_NODE;
  return Number(major) > desiredMajor || (Number(major) === desiredMajor && Number(minor) >= desiredMinor);
}
