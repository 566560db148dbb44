/**
 * The shortest form of an absolute path, as Go's path.Clean returns it: no double slashes, `.`, `..` or
 * trailing slash. Symbolic links are not resolved.
 */
export function cleanPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}
