import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { LabHosts } from './lab-hosts.ts';

const PROBE = fileURLToPath(new URL('api-gap-probe.mjs', import.meta.url));

/** A time in which an API server gave no good answer. */
export interface ApiGap {
  /** Since the start of the watch. */
  readonly startMs: number;
  readonly ms: number;
}

export interface ApiWatch {
  /** Ends the watch. @returns all gaps longer than 150 ms, in order */
  stop(): Promise<readonly ApiGap[]>;
}

/**
 * Watches whether an API server is ready, from the network of lab hosts.
 * @param address `10.78.1.11:6443`
 * @returns after the first good answer
 */
export async function watchApiServer(lab: LabHosts, address: string): Promise<ApiWatch> {
  const child = spawn('nsenter', [`--net=/run/netns/${lab.namespace}`, process.execPath, PROBE, `https://${address}/readyz`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const closed = once(child, 'close');
  const line = async (): Promise<string> => (await lines.next()).value ?? '';
  if ((await line()) !== 'answers') throw new Error(`the probe of ${address} ended`);
  return {
    stop: async () => {
      child.stdin.end();
      const gaps = JSON.parse(await line()) as readonly ApiGap[];
      await closed;
      return gaps;
    },
  };
}

/** Milliseconds of the longest gap; 0 without a gap. */
export function longestGap(gaps: readonly ApiGap[]): number {
  return Math.max(0, ...gaps.map(({ ms }) => ms));
}
