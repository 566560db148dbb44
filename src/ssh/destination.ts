import { usageError } from '../base/errors.ts';

/** A host as the user names it. Missing parts default to ssh_config. */
export interface SshDestination {
  readonly user?: string | undefined;
  /** Alias, name or address, without brackets. */
  readonly host: string;
  readonly port?: number | undefined;
}

const EXAMPLE = 'Write user@host, user@host:port, user@[IPv6 address]:port, ssh://user@host:port, or a Host entry of ssh_config';

/**
 * Parses a destination: `host`, `user@host:port`, `ssh://user@host:port`, `[v6]:port`, a bare IPv6 address.
 * @throws AppError USAGE for any other form, or when host or user have characters that ssh rejects
 */
export function parseSshDestination(text: string): SshDestination {
  const invalid = (why: string): Error => usageError(`"${text}" is not an SSH destination: ${why}`, EXAMPLE);
  const isUri = /^ssh:\/\//i.test(text);
  const rest = isUri ? text.slice(6).replace(/\/$/, '') : text;
  const at = rest.lastIndexOf('@');
  const user = at < 0 ? undefined : decodeUser(rest.slice(0, at), isUri);
  const [host, portText] = splitHostPort(rest.slice(at + 1));
  if (user === '' || user === null) throw invalid('the user before @ is empty or not valid percent-encoding');
  if (user !== undefined && (/\s/.test(user) || !isSafeUserName(user)))
    throw invalid('the user contains a character that is invalid in a user name, or begins with a hyphen');
  if (host === '') throw invalid('missing host');
  if (/[\s/@[\]]/.test(host) || !isSafeHostName(host)) throw invalid('the host contains an invalid character');
  if (portText !== undefined && !isPort(portText)) throw invalid(`"${portText}" is not a valid port (1 to 65535)`);
  return { host, user, port: portText === undefined ? undefined : Number(portText) };
}

/** Whether a text is a decimal TCP port number. */
export function isPort(text: string): boolean {
  return /^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}

function splitHostPort(text: string): [string, string | undefined] {
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/s.exec(text);
  if (bracketed) return [bracketed[1] ?? '', bracketed[2]];
  const first = text.indexOf(':');
  // Two colons without brackets: an IPv6 address, not a port.
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

/**
 * Characters that are invalid in host names, because a shell would interpret them in the command of `Match
 * exec` or ProxyCommand.
 */
const NO_HOST = /^-|['`"$\\;&<>|(){},\u0000-\u0020\u007f]/;

/**
 * Whether OpenSSH accepts a text as a host name.
 * @see openssh ssh.c valid_hostname
 */
export function isSafeHostName(text: string): boolean {
  return !NO_HOST.test(text);
}

/** As for hosts; `$`, inner backslashes and spaces are allowed, because Windows domain users contain them. */
const NO_USER = /^-|['`";&<>|(){}\u0000-\u001f\u007f]| -|\\$/;

/**
 * Whether OpenSSH accepts a text as a remote user name.
 * @see openssh ssh.c valid_ruser
 */
export function isSafeUserName(text: string): boolean {
  return !NO_USER.test(text);
}
