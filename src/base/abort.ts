/**
 * Listens to a signal that may outlive the operation; `AbortSignal.any` would retain memory for as long as it
 * lives.
 * @returns a function that removes the listener
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => undefined;
  const notify = (): void => listener(signal.reason);
  if (signal.aborted) notify();
  else signal.addEventListener('abort', notify, { once: true });
  return () => signal.removeEventListener('abort', notify);
}

/** An abort ends this wait only, not the promise, which other callers may share. Rejects with the signal's reason. */
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
