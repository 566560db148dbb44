import { usageError } from '../base/errors.ts';
import { isSafeHostName, isSafeUserName } from './names.ts';

/** A host as the user names it. Absent parts come from ssh_config or its defaults. */
export interface SshDestination {
  readonly user?: string;
  /** Alias, name or address, without brackets. */
  readonly host: string;
  readonly port?: number;
}

const EXAMPLE = 'Write user@host, user@host:port, user@[IPv6 address]:port, ssh://user@host:port, or a Host of ssh_config';

/**
 * Reads a destination: `host`, `user@host:port`, `ssh://user@host:port`, `[v6]:port`, a bare IPv6 address.
 * @throws AppError USAGE when it is none of these, or when host or user have characters that ssh refuses
 */
export function parseSshDestination(text: string): SshDestination {
  const invalid = (why: string): Error => usageError(`"${text}" is not an SSH destination: ${why}`, EXAMPLE);
  const isUri = /^ssh:\/\//i.test(text);
  const rest = isUri ? text.slice(6).replace(/\/$/, '') : text;
  const at = rest.lastIndexOf('@');
  const user = at < 0 ? undefined : decodeUser(rest.slice(0, at), isUri);
  const [host, portText] = splitHostPort(rest.slice(at + 1));
  if (user === '' || user === null) throw invalid('the user before @ is empty or badly encoded');
  if (user !== undefined && (/\s/.test(user) || !isSafeUserName(user)))
    throw invalid('the user has a space or another character that no user name has, or begins with a hyphen');
  if (host === '') throw invalid('there is no host in it');
  if (/[\s/@[\]]/.test(host) || !isSafeHostName(host)) throw invalid('the host holds a character that no host name has');
  if (portText !== undefined && !isPort(portText)) throw invalid(`"${portText}" is not a port (1 to 65535)`);
  return { host, ...(user === undefined ? {} : { user }), ...(portText === undefined ? {} : { port: Number(portText) }) };
}

/** True for the decimal digits of a TCP port. */
export function isPort(text: string): boolean {
  return /^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}

function splitHostPort(text: string): [string, string | undefined] {
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/s.exec(text);
  if (bracketed) return [bracketed[1] ?? '', bracketed[2]];
  const first = text.indexOf(':');
  // Two colons and no brackets: an IPv6 address, not a port.
  if (first < 0 || text.indexOf(':', first + 1) >= 0) return [text, undefined];
  return [text.slice(0, first), text.slice(first + 1)];
}

function decodeUser(text: string, isUri: boolean): string | null {
  if (!isUri) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
