/**
 * The shortest name of an absolute path, as Go's path.Clean gives it: no doubled slashes, no `.`, no `..`, no slash at the end. Links are not looked at.
 */
export function cleanPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}
