/** A number of hosts, or a percentage of the selected hosts. */
export type Amount = { readonly hosts: number } | { readonly percent: number };

/** Parses `5` or `20%`; null for anything else, and for more than 100 %. */
export function parseAmount(text: string): Amount | null {
  const match = /^([0-9]{1,6})(%?)$/.exec(text.trim());
  if (match === null) return null;
  const value = Number(match[1]);
  if (match[2] !== '%') return { hosts: value };
  return value > 100 ? null : { percent: value };
}

/** `5` or `20%`, as `parseAmount` reads. */
export function formatAmount(amount: Amount): string {
  return 'hosts' in amount ? String(amount.hosts) : `${amount.percent}%`;
}

export function hostsOf(amount: Amount, total: number): number {
  return 'hosts' in amount ? amount.hosts : Math.floor((total * amount.percent) / 100);
}
