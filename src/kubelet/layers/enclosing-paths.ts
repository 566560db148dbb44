/**
 * A field's path and its parents, innermost first: `a[0].b` gives `a[0].b`, `a[0]` and `a`. Because names of
 * map members may contain dots and brackets, some paths may not exist, but all existing ones are included.
 */
export function enclosingPaths(path: string): readonly string[] {
  const paths: string[] = [];
  for (let at = path; at !== ''; at = at.slice(0, Math.max(at.lastIndexOf('.'), at.lastIndexOf('['), 0))) paths.push(at);
  return paths;
}
