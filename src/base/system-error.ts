/** Errors of the operating system in words; other codes are rare enough for the text of Node.js. */
const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  ENOTDIR: 'a part of the path is not a directory',
  EISDIR: 'the path is a directory',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is exceeded',
  ELOOP: 'too many symbolic links',
  ENAMETOOLONG: 'the path is too long',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files',
  EADDRINUSE: 'the address is already in use',
  EADDRNOTAVAIL: 'the local host does not have this address',
};

/** A clause, e.g. `permission denied`, without the path. Errors without a `code` of Node.js keep their message. */
export function systemErrorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  return WORDS[code] ?? error.message.replace(/^E[A-Z0-9]{2,16}: /, '');
}
