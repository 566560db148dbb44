import type { IpAddress } from '../../base/text/ip.ts';
import { defineFact } from './fact.ts';

/** The addresses on which a host listens, by TCP port; `::` usually accepts IPv4 connections as well. */
export type ListeningPorts = ReadonlyMap<number, readonly IpAddress[]>;

export const listeningPorts = defineFact(
  { v4: { kind: 'file', path: '/proc/net/tcp' }, v6: { kind: 'file', path: '/proc/net/tcp6' } },
  ({ v4, v6 }): ListeningPorts | null => {
    if (v4 === null && v6 === null) return null;
    const ports = new Map<number, IpAddress[]>();
    for (const { port, address } of [...parseProcNetTcp(v4?.content ?? ''), ...parseProcNetTcp(v6?.content ?? '')])
      ports.set(port, [...(ports.get(port) ?? []), address]);
    return ports;
  },
);

const LISTENER = /^ *\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /gm;

/** Local addresses and ports in state LISTEN (0A) of /proc/net/tcp. */
export function parseProcNetTcp(text: string): readonly { readonly port: number; readonly address: IpAddress }[] {
  return [...text.matchAll(LISTENER)].map(([, address = '', port = '']) => ({
    port: Number.parseInt(port, 16),
    address: parseAddress(address),
  }));
}

/** The kernel prints each group of four bytes in the byte order of the host: little-endian on all supported hosts. */
function parseAddress(hex: string): IpAddress {
  const groups = hex.match(/.{8}/g) ?? [];
  const value = BigInt(`0x${groups.map((group) => (group.match(/../g) ?? []).toReversed().join('')).join('')}`);
  if (groups.length === 1) return { family: 4, value };
  return value >> 32n === 0xffffn ? { family: 4, value: value & 0xffff_ffffn } : { family: 6, value };
}
