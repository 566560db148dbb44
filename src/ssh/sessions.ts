/** Limits the number of concurrent commands on one connection. */
interface Sessions {
  /** Resolves when a session is free; rejects with the signal's reason. */
  acquire(signal: AbortSignal | undefined): Promise<void>;
  release(): void;
  /**
   * The host rejected the holder's session: reduces the limit, so that one session of the host remains free for
   * stopping a command. False when the holder has the only session: waiting would not help then.
   */
  shrink(): boolean;
}

/** @param max maximum number of concurrent commands */
export function sessions(max: number): Sessions {
  let limit = max;
  let active = 0;
  const waiting: (() => void)[] = [];
  const grant = (): void => {
    while (active < limit && waiting.length > 0) {
      active++;
      waiting.shift()?.();
    }
  };
  return {
    acquire: (signal) =>
      new Promise((resolve, reject) => {
        const onAbort = (): void => {
          waiting.splice(waiting.indexOf(take), 1);
          reject(signal?.reason);
        };
        const take = (): void => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        };
        if (signal?.aborted) return reject(signal.reason);
        signal?.addEventListener('abort', onAbort, { once: true });
        waiting.push(take);
        grant();
      }),
    release: () => {
      active--;
      grant();
    },
    shrink: () => {
      if (active <= 1) return false;
      limit = Math.max(1, Math.min(limit, active - 2));
      return true;
    },
  };
}

interface Connection {
  onLost(listener: () => void): unknown;
  end(): Promise<void>;
}

/** One connection at a time: opened when it is needed, and again after it was lost. */
export function reopened<C extends Connection>(open: () => Promise<C>) {
  let opening: Promise<C> | null = null;
  const drop = (lost: Promise<C>): void => {
    if (opening === lost) opening = null;
  };
  return {
    get: (): Promise<C> => {
      if (opening !== null) return opening;
      const mine = open();
      opening = mine;
      mine.then(
        (connection) => connection.onLost(() => drop(mine)),
        () => drop(mine),
      );
      return mine;
    },
    drop,
    end: async (): Promise<void> => {
      const connection = await opening?.catch(() => null);
      await connection?.end();
    },
  };
}
