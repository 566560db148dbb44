import { expect } from 'vitest';

/**
 * Expects a run to finish in time. A slow run is repeated up to twice: other load on the host delays one run
 * now and then, hardly three.
 * @param what name of the run, for the failure message
 * @returns the result of the last run
 */
export async function within<T>(limitMs: number, run: () => T | Promise<T>, what?: string): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const [started, usage] = [performance.now(), process.cpuUsage()];
    const result = await run();
    const { user, system } = process.cpuUsage(usage);
    // The CPU time of this process, including other threads, is an upper bound of the time that the run used.
    const ms = Math.min(performance.now() - started, (user + system) / 1000);
    if (ms < limitMs) return result;
    if (attempt === 3) expect(ms, what).toBeLessThan(limitMs);
  }
}
