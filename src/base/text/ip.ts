/** An IP address. `value` is the address as an integer of 32 or 128 bits. */
export interface IpAddress {
  readonly family: 4 | 6;
  readonly value: bigint;
}

/** A network: its first address and its prefix length. */
export interface Cidr {
  readonly address: IpAddress;
  readonly prefix: number;
}

const BITS = { 4: 32, 6: 128 } as const;

/**
 * As Go's net.ParseIP: no leading zeros in IPv4, no zone; `::ffff:1.2.3.4` is the IPv4 address. Null: not an
 * address.
 */
export function parseIp(text: string): IpAddress | null {
  if (text.includes(':')) {
    const value = parseIpv6(text);
    if (value === null) return null;
    return value >> 32n === 0xffffn ? { family: 4, value: value & 0xffff_ffffn } : { family: 6, value };
  }
  const value = parseIpv4(text);
  return value === null ? null : { family: 4, value };
}

/** Whether two texts are the same address, in any notation. */
export function isSameAddress(a: string, b: string): boolean {
  const [one, other] = [parseIp(a), parseIp(b)];
  return one !== null && other !== null && one.value === other.value && one.family === other.family;
}

/**
 * As Go's net.ParseCIDR, with host bits cleared: `10.96.0.12/24` is 10.96.0.0/24. Null: invalid, or IPv4
 * written as IPv6 (`::ffff:10.0.0.0/104`), which no consumer of subnets accepts.
 */
export function parseCidr(text: string): Cidr | null {
  const match = /^([^/]+)\/([0-9]{1,3})$/.exec(text);
  const address = match && parseIp(match[1] as string);
  if (!match || !address || (address.family === 4 && text.includes(':'))) return null;
  const prefix = Number(match[2]);
  if (prefix > BITS[address.family]) return null;
  const hostBits = BigInt(BITS[address.family] - prefix);
  return { address: { family: address.family, value: (address.value >> hostBits) << hostBits }, prefix };
}

/** Formats an address as Go does: dotted decimal, or RFC 5952. */
export function formatIp({ family, value }: IpAddress): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(112 - 16 * i)) & 0xffffn));
  const run = longestZeroRun(groups);
  const hex = (part: readonly number[]) => part.map((group) => group.toString(16)).join(':');
  return run ? `${hex(groups.slice(0, run.start))}::${hex(groups.slice(run.start + run.length))}` : hex(groups);
}

/** For example `10.96.0.0/12`. */
export function formatCidr({ address, prefix }: Cidr): string {
  return `${formatIp(address)}/${prefix}`;
}

/** The number of host bits of a network. */
export function hostBits({ address, prefix }: Cidr): number {
  return BITS[address.family] - prefix;
}

/** The address at an index of the network (0 is the network address); null when the network is too small. */
export function addressAt(cidr: Cidr, index: number): IpAddress | null {
  if (BigInt(index) >= 1n << BigInt(hostBits(cidr))) return null;
  return { family: cidr.address.family, value: cidr.address.value + BigInt(index) };
}

export function cidrContains(cidr: Cidr, { family, value }: IpAddress): boolean {
  const bits = BigInt(hostBits(cidr));
  return family === cidr.address.family && value >> bits === cidr.address.value >> bits;
}

export function cidrsOverlap(a: Cidr, b: Cidr): boolean {
  return cidrContains(a, b.address) || cidrContains(b, a.address);
}

/** 0.0.0.0 or ::. */
export function isUnspecified({ value }: IpAddress): boolean {
  return value === 0n;
}

/** 127.0.0.0/8 or ::1. */
export function isLoopback({ family, value }: IpAddress): boolean {
  return family === 4 ? value >> 24n === 127n : value === 1n;
}

/** Go's IsGlobalUnicast: not broadcast, unspecified, loopback, multicast or link-local. */
export function isGlobalUnicast(address: IpAddress): boolean {
  const { family, value } = address;
  if (isUnspecified(address) || isLoopback(address)) return false;
  if (family === 4) return value !== 0xffff_ffffn && value >> 28n !== 0xen && value >> 16n !== 0xa9fen;
  return value >> 120n !== 0xffn && value >> 118n !== 0x3fan;
}

function parseIpv4(text: string): bigint | null {
  const match = /^(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})$/.exec(text);
  if (!match) return null;
  let value = 0n;
  for (const field of match.slice(1)) {
    if (Number(field) > 255) return null;
    value = (value << 8n) | BigInt(field);
  }
  return value;
}

function parseIpv6(text: string): bigint | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const [head, tail] = halves.map((half, i) => parseGroups(half, i === halves.length - 1));
  if (!head || tail === null) return null;
  const given = head.length + (tail?.length ?? 0);
  if (tail ? given > 7 : given !== 8) return null;
  const groups = [...head, ...Array<number>(8 - given).fill(0), ...(tail ?? [])];
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}

/** Groups of 16 bits separated by colons; the last may be an IPv4 address, which fills two groups. */
function parseGroups(text: string, last: boolean): number[] | null {
  if (text === '') return [];
  const groups: number[] = [];
  const fields = text.split(':');
  for (const [i, field] of fields.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(field)) groups.push(Number.parseInt(field, 16));
    else {
      const ipv4 = last && i === fields.length - 1 ? parseIpv4(field) : null;
      if (ipv4 === null) return null;
      groups.push(Number(ipv4 >> 16n), Number(ipv4 & 0xffffn));
    }
  }
  return groups;
}

/** The first of the longest runs of at least two zero groups. */
function longestZeroRun(groups: readonly number[]): { readonly start: number; readonly length: number } | null {
  let best: { start: number; length: number } | null = null;
  for (let start = 0; start < groups.length; start++) {
    let end = start;
    while (groups[end] === 0) end++;
    if (end - start >= 2 && end - start > (best?.length ?? 0)) best = { start, length: end - start };
    start = Math.max(start, end);
  }
  return best;
}
