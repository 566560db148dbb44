/** One figure and its target; the exit code is 1 when a target is missed. */
export function validate(what: string, measured: number, desired: number, unit: string): void {
  const isFine = measured <= desired;
  if (!isFine) process.exitCode = 1;
  const digits = measured >= 100 ? 0 : 2;
  process.stdout.write(`${isFine ? 'ok  ' : 'MISS'} ${what}: ${measured.toFixed(digits)} ${unit} (at most ${desired})\n`);
}

/** A figure without a target. */
export function notify(what: string, measured: string): void {
  process.stdout.write(`     ${what}: ${measured}\n`);
}

/** The median. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/**
 * Waits until a condition holds, polling every few milliseconds. @returns the time of that, by
 * `performance.now()`
 */
export async function until(what: string, isTrue: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<number> {
  for (const begin = performance.now(); ; ) {
    if (await isTrue()) return performance.now();
    if (performance.now() - begin > timeoutMs) throw new Error(`timeout waiting for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
