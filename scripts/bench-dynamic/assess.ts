/** One figure beside what is wanted of it; the exit code is 1 when one is missed. */
export function validate(what: string, measured: number, desired: number, unit: string): void {
  const isFine = measured <= desired;
  if (!isFine) process.exitCode = 1;
  const digits = measured >= 100 ? 0 : 2;
  process.stdout.write(`${isFine ? 'ok  ' : 'MISS'} ${what}: ${measured.toFixed(digits)} ${unit} (at most ${desired})\n`);
}

/** A figure that nothing is wanted of. */
export function notify(what: string, measured: string): void {
  process.stdout.write(`     ${what}: ${measured}\n`);
}

/** The middle one. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Waits until something is true, looking every few milliseconds. @returns when that was, by `performance.now()` */
export async function until(what: string, isTrue: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<number> {
  for (const begin = performance.now(); ; ) {
    if (await isTrue()) return performance.now();
    if (performance.now() - begin > timeoutMs) throw new Error(`it never came to be: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
