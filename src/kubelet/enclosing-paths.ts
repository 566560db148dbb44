/**
 * A field's path and those of all it stands in, from the inside: `a[0].b` gives `a[0].b`, `a[0]` and `a`. Names of map members may hold dots
 * and brackets: some of the paths then are none, but all that are come up.
 */
export function enclosingPaths(path: string): readonly string[] {
  const paths: string[] = [];
  for (let at = path; at !== ''; at = at.slice(0, Math.max(at.lastIndexOf('.'), at.lastIndexOf('['), 0))) paths.push(at);
  return paths;
}
