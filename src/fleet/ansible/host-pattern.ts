import { expandRanges, type RangeFault } from '../range.ts';

export type HostPattern = { readonly names: readonly string[]; readonly port: number | null } | { readonly fault: RangeFault };

const WITH_PORT = [/^\[(.+)\]:([0-9]+)$/, /^((?:[^:[\]]|\[[^\]]*\])*):([0-9]+)$/];
const LABEL = '(?:[\\p{L}\\p{N}_]|\\[[^\\]]*\\])(?:[\\p{L}\\p{N}_-]|\\[[^\\]]*\\])*(?<![_-])';
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`, 'u');
const IPV6 = /^[0-9a-f.[\]]*:[0-9a-f:.[\]]*$/i;

/**
 * The hosts of a pattern: `web[01:20].lan`, `host:2222`, `[::1]:22`.
 * @see ansible parsing/utils/addresses.py parse_address
 */
export function readHostPattern(pattern: string): HostPattern {
  const [host, port] = splitPort(pattern);
  const expansion = expandRanges(host);
  return 'fault' in expansion ? expansion : { names: expansion.items.map(({ text }) => text), port };
}

/** A port is only split off what is then still a host. */
function splitPort(pattern: string): readonly [string, number | null] {
  for (const form of WITH_PORT) {
    const [, host, port] = form.exec(pattern) ?? [];
    if (host !== undefined && (HOST_NAME.test(host) || IPV6.test(host))) return [host, Number(port)];
  }
  return [pattern, null];
}
