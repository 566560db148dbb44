import { parseIp } from '../../src/base/text/ip.ts';
import type { ListeningPorts } from '../../src/host/facts/listening-ports.ts';

/** The listening ports of a host. @param sockets ports of all addresses, or `[port, address]` */
export function listening(...sockets: readonly (number | readonly [number, string])[]): ListeningPorts {
  const found = sockets.map((socket) => (typeof socket === 'number' ? ([socket, '::'] as const) : socket));
  return new Map(
    found.map(([port]) => [port, found.filter((other) => other[0] === port).flatMap(([, address]) => parseIp(address) ?? [])]),
  );
}
