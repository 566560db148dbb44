import type { Fact } from './facts/fact.ts';
import type { Host } from './host.ts';

/** Asks a host for a fact (several combined with `combineFacts`) in one round trip. Throws what `host.ask` throws. */
export async function observe<T>(host: Host, fact: Fact<T>, signal?: AbortSignal): Promise<T> {
  return fact.parse(await host.query(fact.queries, signal === undefined ? {} : { signal }));
}
