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
