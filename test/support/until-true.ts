/**
 * Waits for something outside of this process: asks again and again, a few milliseconds apart.
 * @throws Error when it is not so after `timeoutMs`
 */
export async function untilTrue(condition: () => boolean | Promise<boolean>, timeoutMs = 15_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`still not so after ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
