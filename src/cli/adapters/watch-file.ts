import { stat } from 'node:fs/promises';

/** One stat per interval causes no measurable load. */
const INTERVAL_MS = 2_000;

/**
 * Calls a function when a file was changed, replaced, created or removed and then stayed the same for one
 * interval, so that no half-written file is read. Polls the path, so symbolic links, renames and file systems
 * without notifications work.
 * @param onChange not called for the initial state of the file
 * @param intervalMs time between two polls
 */
export function watchFile(path: string, onChange: () => void, signal: AbortSignal, intervalMs = INTERVAL_MS): void {
  let known: string | null = null;
  let last: string | null = null;
  const inspect = async (): Promise<void> => {
    const now = await fingerprint(path);
    known ??= now;
    const isSettled = now === last;
    last = now;
    if (isSettled && now !== known) {
      known = now;
      onChange();
    }
  };
  let timer: NodeJS.Timeout | undefined;
  const next = (): void => {
    if (signal.aborted) return;
    timer = setTimeout(() => void inspect().then(next, next), intervalMs);
    timer.unref();
  };
  void inspect().then(next, next);
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
}

async function fingerprint(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
