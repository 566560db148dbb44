import { printable } from '../../base/text/printable.ts';
import { defineFact } from '../facts/fact.ts';
import type { FileFact } from '../facts/query.ts';
import { COMMIT_DIRECTORY } from './revert-script.ts';

/** A change that a host has not heard the confirmation of, or took back. */
export interface CommitRecord {
  /** `armed`: waits for its confirmation; `reverting`: is being taken back; `reverted`: was. */
  readonly state: 'armed' | 'reverting' | 'reverted';
  readonly id: string;
  readonly owner: string;
  /** Unix seconds of the host's clock. */
  readonly armedAt: number;
  readonly timeoutSeconds: number;
  /** Of what was taken back: the reason, for people. */
  readonly why: string | null;
  readonly revertedAt: number | null;
  /** What did not work when it was taken back. */
  readonly issue: string | null;
}

/** Who holds the lock of a host. */
export interface LockHolder {
  readonly id: string;
  readonly name: string;
  readonly processId: number;
  readonly machine: string;
  /** Unix seconds of the host's clock, when it was last taken. */
  readonly since: number;
  readonly secondsLeft: number;
}

const STATES = { commit: 'armed', reverting: 'reverting', reverted: 'reverted' } as const;

/** The change that is not confirmed; else the one that was taken back last; null: neither. Read as root: the directory is closed to others. */
export const commitRecord = defineFact(
  {
    reverting: { kind: 'file', path: `${COMMIT_DIRECTORY}/reverting/record` },
    commit: { kind: 'file', path: `${COMMIT_DIRECTORY}/commit/record` },
    reverted: { kind: 'file', path: `${COMMIT_DIRECTORY}/reverted/record` },
  },
  (answers): CommitRecord | null => {
    const found = (['reverting', 'commit', 'reverted'] as const).find((name) => contentOf(answers[name]) !== undefined);
    return found === undefined ? null : parseRecord(`state ${found}\n${contentOf(answers[found]) ?? ''}`);
  },
);

function contentOf(file: FileFact | null): string | undefined {
  return file?.content;
}

/** Reads `state NAME` and the lines of a record; null when nothing is told. The host wrote it: it is made fit for one line. */
export function parseRecord(text: string): CommitRecord | null {
  const reported = readLines(text);
  const state = STATES[reported('state') as keyof typeof STATES];
  if (state === undefined) return null;
  return {
    state,
    id: reported('id'),
    owner: reported('owner'),
    armedAt: numberOf(reported('armed')),
    timeoutSeconds: numberOf(reported('timeout')),
    why: reported('why') || null,
    revertedAt: reported('at') === '' ? null : numberOf(reported('at')),
    issue: reported('trouble') || null,
  };
}

/** Reads the lines of a lock; null when there are none. */
export function parseLockHolder(text: string): LockHolder | null {
  const reported = readLines(text);
  if (reported('id') === '') return null;
  return {
    id: reported('id'),
    name: reported('owner') || 'somebody',
    processId: numberOf(reported('process')),
    machine: reported('machine'),
    since: numberOf(reported('since')),
    secondsLeft: numberOf(reported('left')),
  };
}

function readLines(text: string): (key: string) => string {
  const lines = text.split('\n');
  return (key) => printable(lines.find((line) => line.startsWith(`${key} `))?.slice(key.length + 1) ?? '');
}

function numberOf(text: string): number {
  return /^\d{1,11}$/.test(text) ? Number(text) : 0;
}

/** When the host takes it back by itself, in Unix seconds of its clock. */
export function revertsAt({ armedAt, timeoutSeconds }: CommitRecord): number {
  return armedAt + timeoutSeconds;
}
