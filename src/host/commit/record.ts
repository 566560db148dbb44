import { printable } from '../../base/text/printable.ts';
import { defineFact } from '../facts/fact.ts';
import { COMMIT_DIRECTORY } from './revert-script.ts';

/** A change that waits for its confirmation or was rolled back. */
export interface CommitRecord {
  /** `armed`: waits for its confirmation; `reverting`: being rolled back; `reverted`: rolled back. */
  readonly state: 'armed' | 'reverting' | 'reverted';
  readonly id: string;
  readonly owner: string;
  readonly armedAt: number;
  readonly timeoutSeconds: number;
  /** Reason of a rollback, for messages. */
  readonly why: string | null;
  readonly revertedAt: number | null;
  /** Errors during the rollback. */
  readonly issue: string | null;
}

export interface LockHolder {
  readonly id: string;
  readonly name: string;
  readonly processId: number;
  readonly machine: string;
  /** Unix seconds of the host's clock when the lock was last taken. */
  readonly since: number;
  readonly secondsLeft: number;
}

const STATES = { commit: 'armed', reverting: 'reverting', reverted: 'reverted' } as const;

/** The pending change, otherwise the last rolled-back one; null: neither. Requires root. */
export const commitRecord = defineFact(
  {
    reverting: { kind: 'file', path: `${COMMIT_DIRECTORY}/reverting/record` },
    commit: { kind: 'file', path: `${COMMIT_DIRECTORY}/commit/record` },
    reverted: { kind: 'file', path: `${COMMIT_DIRECTORY}/reverted/record` },
  },
  (answers): CommitRecord | null => {
    const found = (['reverting', 'commit', 'reverted'] as const).find((name) => answers[name]?.content !== undefined);
    return found === undefined ? null : parseRecord(`state ${found}\n${answers[found]?.content ?? ''}`);
  },
);

/** `state NAME` and the lines of a record. The host controls the text, so values are made printable on one line. */
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

export function parseLockHolder(text: string): LockHolder | null {
  const reported = readLines(text);
  if (reported('id') === '') return null;
  return {
    id: reported('id'),
    name: reported('owner') || 'an unknown owner',
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

/** Unix time (host's clock) of the automatic rollback. */
export function revertsAt({ armedAt, timeoutSeconds }: CommitRecord): number {
  return armedAt + timeoutSeconds;
}
