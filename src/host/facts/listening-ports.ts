import { defineFact } from './fact.ts';

/** Listening TCP ports; null when unknown. */
export const listeningPorts = defineFact(
  { v4: { kind: 'file', path: '/proc/net/tcp' }, v6: { kind: 'file', path: '/proc/net/tcp6' } },
  ({ v4, v6 }): ReadonlySet<number> | null =>
    v4 === null && v6 === null ? null : new Set([...parseProcNetTcp(v4?.content ?? ''), ...parseProcNetTcp(v6?.content ?? '')]),
);

/** Local ports in state LISTEN (0A) of /proc/net/tcp. */
export function parseProcNetTcp(text: string): readonly number[] {
  return [...text.matchAll(/^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /gm)].map((match) =>
    Number.parseInt(match[1] as string, 16),
  );
}
