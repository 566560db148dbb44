import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Time without activity after which memory is released. */
const IDLE_MS = 10_000;
/** V8 discards the compiled code of a function that did not run between several collections. */
const COLLECTIONS = 5;
/** Less memory for compiled code; no compilers whose code costs more memory than it saves time in short bursts of work. */
const FLAGS = ['--optimize-for-size', '--no-sparkplug', '--no-maglev', '--no-opt', '--compact-on-every-full-gc', '--expose-gc'];

/**
 * Sets up V8 for a process that waits most of the time.
 * @returns a function to call after each activity: when none follows for ten seconds, garbage is collected and the
 *   freed pages are returned. V8 does this only when memory is allocated, and an idle process allocates none
 */
export function releaseMemoryWhenIdle(): () => void {
  for (const flag of FLAGS) setFlagsFromString(flag);
  // The documented way to collect garbage in a process that was not started with --expose-gc: new contexts have the function.
  const gc = runInNewContext('gc') as NodeJS.GCFunction;
  const collect = (): void => {
    for (let done = 0; done < COLLECTIONS; done++) gc();
    // Also shrinks the heap. Node.js 20 knows no such options and collects only young objects then.
    gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  };
  let timer: NodeJS.Timeout | null = null;
  return () => {
    if (timer === null) timer = setTimeout(collect, IDLE_MS).unref();
    else timer.refresh();
  };
}
