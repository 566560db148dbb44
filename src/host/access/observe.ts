import { quickAtFirst, type Wait } from '../../base/wait-until.ts';
import type { Fact } from '../facts/fact.ts';
import { parseEach } from '../facts/parse-text.ts';
import type { Host } from './host.ts';

/** Queries a fact of a host (several with `combineFacts`) in one round trip. Throws as `host.query`. */
export async function observe<T>(host: Host, fact: Fact<T>, signal?: AbortSignal): Promise<T> {
  const { queries, areKeys = false } = fact;
  return fact.parse(await host.query(queries, { areKeys, signal }), host.parseText ?? parseEach);
}

const LOCAL_PAUSE = quickAtFirst({ quickMs: 100, forMs: 30_000, slowMs: 500 });
const REMOTE_PAUSE = quickAtFirst({ quickMs: 200, forMs: 5_000, slowMs: 500 });

/** For `waitUntil`. Each query of a remote host costs a program over SSH, often with sudo. */
export function hostPause({ dial }: Pick<Host, 'dial'>): Wait<never, never>['pauseMs'] {
  return dial === undefined ? LOCAL_PAUSE : REMOTE_PAUSE;
}
