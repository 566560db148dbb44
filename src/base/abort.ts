/**
 * Listens to a signal that may live much longer than what it stops. (`AbortSignal.any` keeps something for each use as long as the signal lives.)
 * @returns how to stop listening
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => undefined;
  const notify = (): void => listener(signal.reason);
  if (signal.aborted) notify();
  else signal.addEventListener('abort', notify, { once: true });
  return () => signal.removeEventListener('abort', notify);
}

/** Waits for something that others may wait for too: an abort ends this wait, not the thing. Rejects with the signal's reason. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  let forget = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    forget = onAbort(signal, reject);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    forget();
  }
}
