import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { ConfigzNotToldError } from './configz-source.ts';

/** Why something was not told. */
export interface Untold {
  readonly why: string;
  /** The kubelet refused the credential it was asked with, or does not answer at all. */
  readonly isRefusal: boolean;
}

/** Something a process is asked until it is told, and then not again: it does not change while the process lives. */
export interface AskedOnce<T> {
  /** Null: it is not known, see `trouble`. */
  of(pid: number, ask: () => Promise<T>): Promise<T | null>;
  /** Why it is not known; null: it is, or was not asked for. */
  readonly trouble: Untold | null;
  /** The process is about to be another. */
  forget(): void;
}

/** After two tries that failed: it may be for good. */
const AGAIN_MS = 5_000;

/** Asks processes. @param onTrouble told why a try failed */
export function askUntilTold<T>(clock: Clock, onTrouble: (message: string) => void): AskedOnce<T> {
  let told: { readonly pid: number; readonly answer: T } | null = null;
  let trouble: (Untold & { readonly againAt: number }) | null = null;
  const now = (): number => clock.now().getTime();
  return {
    get trouble() {
      return trouble;
    },
    forget: () => {
      told = null;
      trouble = null;
    },
    of: async (pid, ask) => {
      if (told?.pid === pid) return told.answer;
      if (trouble !== null && now() < trouble.againAt) return null;
      try {
        told = { pid, answer: await ask() };
        trouble = null;
        return told.answer;
      } catch (error) {
        const why = error instanceof ConfigzNotToldError ? error.why : messageOf(error);
        onTrouble(why);
        const againAt = now() + (trouble === null ? 0 : AGAIN_MS);
        trouble = { why, isRefusal: error instanceof ConfigzNotToldError && error.credential === 'refused', againAt };
        return null;
      }
    },
  };
}
