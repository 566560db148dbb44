/**
 * Parses the scheme of a URL as Go does.
 * @returns in lower case, empty without a scheme; null if Go cannot parse the URL
 * @see Go 1.26 net/url Parse
 */
export function parseGoUrlScheme(text: string): string | null {
  const [beforeFragment = '', fragment = ''] = cut(text, '#');
  if (/[\x00-\x1f\x7f]/.test(text) || !hasValidEscapes(fragment)) return null;
  const match = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(beforeFragment);
  if (match === null && beforeFragment.startsWith(':')) return null;
  const scheme = (match?.[1] ?? '').toLowerCase();
  const [rest = ''] = cut(beforeFragment.slice(match?.[0].length ?? 0), '?');
  if (!rest.startsWith('/')) {
    if (scheme !== '') return scheme;
    const [segment = ''] = cut(rest, '/');
    return segment.includes(':') || !hasValidEscapes(rest) ? null : scheme;
  }
  if (!rest.startsWith('//') || (scheme === '' && rest.startsWith('///'))) return hasValidEscapes(rest) ? scheme : null;
  const slash = rest.indexOf('/', 2);
  const authority = slash === -1 ? rest.slice(2) : rest.slice(2, slash);
  return isValidAuthority(authority) && (slash === -1 || hasValidEscapes(rest.slice(slash))) ? scheme : null;
}

function cut(text: string, separator: string): readonly [string, string] {
  const index = text.indexOf(separator);
  return index === -1 ? [text, ''] : [text.slice(0, index), text.slice(index + separator.length)];
}

function hasValidEscapes(text: string): boolean {
  return !/%(?![0-9A-Fa-f]{2})/.test(text);
}

function isValidAuthority(authority: string): boolean {
  const at = authority.lastIndexOf('@');
  const user = at === -1 ? '' : authority.slice(0, at);
  return /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user) && hasValidEscapes(user) && isValidHost(authority.slice(at + 1));
}

function isValidHost(host: string): boolean {
  if (host.startsWith('[')) {
    const end = host.lastIndexOf(']');
    if (end === -1 || !isOptionalPort(host.slice(end + 1))) return false;
    const [address, zone] = cut(host.slice(0, end), '%25');
    return isHostText(address) && isZone(zone);
  }
  const colon = host.lastIndexOf(':');
  return (colon === -1 || isOptionalPort(host.slice(colon))) && isHostText(host);
}

function isOptionalPort(text: string): boolean {
  return /^(?::[0-9]*)?$/.test(text);
}

/** Only escapes of non-ASCII bytes and of the percent sign are allowed in a host. */
function isHostText(text: string): boolean {
  return /^(?:%25|%[89A-Fa-f][0-9A-Fa-f]|[A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"]|[^\x00-\x7f])*$/.test(text);
}

/** In the zone of an address, host characters and the space can be escaped as well. */
function isZone(text: string): boolean {
  const plain = text.replace(/%([0-7][0-9A-Fa-f])/g, (escaped, code: string) => {
    const char = String.fromCharCode(Number.parseInt(code, 16));
    return char === ' ' || char === '%' || isHostText(char) ? '' : escaped;
  });
  return !plain.includes('%') && isHostText(plain);
}
