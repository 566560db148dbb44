/** Characters that no host name may have: a shell would read them in the command of `Match exec` or ProxyCommand. */
const NO_HOST = /^-|['`"$\\;&<>|(){},\u0000-\u0020\u007f]/;

/**
 * True for a name that OpenSSH accepts as a host.
 * @see openssh ssh.c valid_hostname
 */
export function isSafeHostName(text: string): boolean {
  return !NO_HOST.test(text);
}

/** As for hosts; `$`, backslashes inside and blanks are part of names in Windows domains. */
const NO_USER = /^-|['`";&<>|(){}\u0000-\u001f\u007f]| -|\\$/;

/**
 * True for a name that OpenSSH accepts as a remote user.
 * @see openssh ssh.c valid_ruser
 */
export function isSafeUserName(text: string): boolean {
  return !NO_USER.test(text);
}
