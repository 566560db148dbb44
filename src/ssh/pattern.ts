/**
 * Reports whether a text matches an OpenSSH pattern: `*` any number of characters, `?` exactly one, no other
 * special characters.
 * @see ssh_config(5) PATTERNS, openssh match.c
 */
export function matchPattern(text: string, pattern: string): boolean {
  let t = 0;
  let p = 0;
  let star = -1;
  let retryAt = 0;
  // Greedy with one retry point: linear for usual patterns, never exponential for hostile ones.
  while (t < text.length) {
    if (p < pattern.length && pattern[p] === '*') {
      star = p++;
      retryAt = t;
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++retryAt;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** Whether a pattern matches and no negated one (`!pattern`) does. */
export function matchPatternList(text: string, patterns: readonly string[]): boolean {
  const negated = patterns.some((pattern) => pattern.startsWith('!') && matchPattern(text, pattern.slice(1)));
  return !negated && patterns.some((pattern) => !pattern.startsWith('!') && matchPattern(text, pattern));
}
