/** As Go's path.Clean, for an absolute path: no double slashes, `.`, `..` or trailing slash. Links are not resolved. */
export function cleanPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}
