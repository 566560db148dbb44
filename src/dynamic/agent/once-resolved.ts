import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { ConfigzUnavailableError } from './configz-source.ts';

/** Why something was not told. */
export interface Untold {
  readonly why: string;
  /** The kubelet refused the credential it was asked with, or does not answer at all. */
  readonly isRefusal: boolean;
}

/** Something a process is asked until it is told, and then not again: it does not change while the process lives. */
export interface Lazy<T> {
  /** Null: it is not known, see `trouble`. */
  of(pid: number, query: () => Promise<T>): Promise<T | null>;
  /** Why it is not known; null: it is, or was not asked for. */
  readonly issue: Untold | null;
  /** The process is about to be another. */
  forget(): void;
}

/** After two tries that failed: it may be for good. */
const AGAIN_MS = 5_000;

/** Asks processes. @param onIssue told why a try failed */
export function onceResolved<T>(clock: Clock, onIssue: (message: string) => void): Lazy<T> {
  let reported: { readonly pid: number; readonly answer: T } | null = null;
  let issue: (Untold & { readonly againAt: number }) | null = null;
  const now = (): number => clock.now().getTime();
  return {
    get issue() {
      return issue;
    },
    forget: () => {
      reported = null;
      issue = null;
    },
    of: async (pid, query) => {
      if (reported?.pid === pid) return reported.answer;
      if (issue !== null && now() < issue.againAt) return null;
      try {
        reported = { pid, answer: await query() };
        issue = null;
        return reported.answer;
      } catch (error) {
        const why = error instanceof ConfigzUnavailableError ? error.why : messageOf(error);
        onIssue(why);
        const againAt = now() + (issue === null ? 0 : AGAIN_MS);
        issue = { why, isRefusal: error instanceof ConfigzUnavailableError && error.credential === 'refused', againAt };
        return null;
      }
    },
  };
}
