import { settle } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import type { EndedBatch, GateAnswer } from './batch-gates.ts';
import type { Attempt, GatePorts } from './gate-ports.ts';
import { limitsOf, type PreparedGate } from './rollout-settings.ts';

/** Attempts a gate until it passes, its retries are used up, or its time limit is reached. Errors are failed attempts. */
export async function runGate(
  ports: GatePorts,
  gate: PreparedGate,
  batch: EndedBatch,
): Promise<GateAnswer & { readonly attempts: number }> {
  const { clock, signal } = ports;
  const { timeoutMs, intervalMs, retries } = limitsOf(gate);
  const end = clock.now().getTime() + timeoutMs;
  const leftMs = (): number => end - clock.now().getTime();
  for (let attempts = 1; ; attempts++) {
    const done = await settle(attempt(ports, { gate, batch, timeoutMs: Math.max(leftMs(), 1) }));
    signal.throwIfAborted();
    const result = 'value' in done ? done.value : { isPassed: false, answer: done.error.problems[0]?.message ?? done.error.code };
    const answer = { ...result, answer: printable(result.answer, MOST_ANSWER) };
    if (answer.isPassed || attempts > retries) return { ...answer, attempts };
    if (leftMs() <= intervalMs) return { ...answer, answer: `${answer.answer} (time limit reached)`, attempts };
    await clock.sleep(intervalMs, signal);
  }
}

const MOST_ANSWER = 300;

async function attempt(ports: GatePorts, given: Attempt): Promise<GateAnswer> {
  const { command, job, prometheus } = given.gate;
  if (command !== undefined) return (await import('./command-gate.ts')).commandGate(ports, command, given);
  if (prometheus !== undefined) return (await import('./prometheus-gate.ts')).prometheusGate(ports, prometheus, given);
  if (job !== undefined) return (await import('./job-gate.ts')).jobGate(ports, job, given);
  return { isPassed: true, answer: 'nothing to check' };
}
