import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { ConfigzUnavailableError, type CredentialResult } from './configz-source.ts';

export interface FactReadFailure {
  readonly why: string;
  /** Result of the credential of the node; null: not known. */
  readonly credential: CredentialResult | null;
}

/**
 * A fact of a process that is read until it is known, and then kept, because it does not change while the
 * process lives.
 */
export interface ProcessFact<T> {
  /** Null: unknown, see `issue`. */
  of(pid: number, query: () => Promise<T>): Promise<T | null>;
  /** Reason of the last failure; null: known, or not read yet. */
  readonly issue: FactReadFailure | null;
  /** The process is about to be replaced. */
  forget(): void;
}

/** Delay after two failed reads, because the failure may be permanent. */
const AGAIN_MS = 5_000;

/**
 * Creates a fact that is read once per kubelet process.
 * @param onIssue called with the reason of each failed read
 */
export function createProcessFact<T>(clock: Clock, onIssue: (message: string) => void): ProcessFact<T> {
  let reported: { readonly pid: number; readonly answer: T } | null = null;
  let issue: (FactReadFailure & { readonly againAt: number }) | null = null;
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
        issue = { why, credential: error instanceof ConfigzUnavailableError ? error.credential : null, againAt };
        return null;
      }
    },
  };
}
