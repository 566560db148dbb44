import { AppError, type Problem } from '../../base/errors.ts';
import { revealText, type SensitiveText } from '../../base/text/secret.ts';
import type { FileFact } from '../facts/query.ts';
import type { FileSummary, HostChange } from './change.ts';

/** The desired state of a file. `mode` contains the permission bits, `owner` is `user:group`. */
export interface DesiredFile {
  readonly path: string;
  readonly content: string | SensitiveText;
  readonly mode: number;
  readonly owner: string;
  /** Never replace an existing file, as kubeadm handles the CA certificate. */
  readonly onlyIfAbsent?: boolean;
  readonly summary?: FileSummary;
  /** Reason for different content, as a clause. */
  readonly whyOther?: string;
}

type WriteFile = Extract<HostChange, { kind: 'write-file' }>;

/**
 * The change to the desired file; null when none is needed. An existing file keeps a stricter mode (hardened
 * hosts have config.yaml 0600), as with kubeadm, and without root on the host its owner.
 * @throws AppError NOT_A_FILE, exit code 3: the path is a directory or a socket
 */
export function diffFile(found: FileFact | null, desired: DesiredFile, options: { readonly mayChown?: boolean } = {}): WriteFile | null {
  const { path, content, summary } = desired;
  const base = { kind: 'write-file', path, content, ...(summary === undefined ? {} : { summary }) } as const;
  if (found === null)
    return { ...base, mode: desired.mode, owner: desired.owner, action: 'create', before: null, reason: 'does not exist' };
  const problem = notAFile(path, found);
  if (problem !== null) throw new AppError(problem, { exitCode: 3 });
  if (desired.onlyIfAbsent === true) return null;
  const mode = (found.mode & ~desired.mode) === 0 ? found.mode : desired.mode;
  const owner = options.mayChown === false ? found.owner : desired.owner;
  const reason = reasonsToWrite(found, { content: revealText(desired.content), mode, owner }, desired.whyOther);
  if (reason === null) return null;
  return { ...base, mode, owner, action: 'update', before: previousFile(found), reason };
}

/** The state of a file that a change replaces, with which the change is undone. */
export function previousFile({ content = '', mode, owner }: FileFact): NonNullable<WriteFile['before']> {
  return { content, mode, owner };
}

/** The problem of a path that is not a file; null: a file, or nothing. */
export function notAFile(path: string, found: FileFact | null): Problem | null {
  if (found === null || (found.type !== 'directory' && found.type !== 'socket')) return null;
  return { code: 'NOT_A_FILE', message: `${path} is a ${found.type}, but must be a file`, hint: `Remove ${path}` };
}

/** The reason of a file whose content alone changes, unless the phase has its own. */
export const CONTENT_DIFFERS = 'its content differs';

function reasonsToWrite(
  found: FileFact,
  desired: { content: string; mode: number; owner: string },
  whyOther = CONTENT_DIFFERS,
): string | null {
  const reasons = [
    found.content === desired.content ? null : whyOther,
    found.mode === desired.mode ? null : `mode ${formatMode(found.mode)} → ${formatMode(desired.mode)}`,
    found.owner === desired.owner ? null : `owner ${found.owner} → ${desired.owner}`,
  ].filter((reason) => reason !== null);
  return reasons.length === 0 ? null : reasons.join(', ');
}

export function formatMode(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}

/** The creation of a directory, or null if one exists. An existing one keeps its mode and owner. */
export function diffDirectory(found: FileFact | null, path: string, mode: number): Extract<HostChange, { kind: 'make-directory' }> | null {
  return found === null ? { kind: 'make-directory', path, mode, owner: 'root:root', reason: 'does not exist' } : null;
}
