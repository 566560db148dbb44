/**
 * Listens to an abort signal that may live longer than the operation it stops. `AbortSignal.any` would retain
 * memory per use for as long as the signal lives.
 * @returns a function that removes the listener
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => undefined;
  const notify = (): void => listener(signal.reason);
  if (signal.aborted) notify();
  else signal.addEventListener('abort', notify, { once: true });
  return () => signal.removeEventListener('abort', notify);
}

/** Waits for a promise that other callers may share: an abort ends this wait only. Rejects with the signal's reason. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  let removeListener = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    removeListener = onAbort(signal, reject);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    removeListener();
  }
}
