/**
 * Waits for a condition outside of this process, polling every few milliseconds.
 * @throws Error when the condition does not hold within `timeoutMs`
 */
export async function untilTrue(condition: () => boolean | Promise<boolean>, timeoutMs = 15_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`still not so after ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
