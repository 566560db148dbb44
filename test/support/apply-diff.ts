/**
 * Applies a unified diff like patch(1), strictly: every kept and removed line must be at the position given
 * by the hunk.
 * @throws Error naming the line of the diff that does not fit
 */
export function applyDiff(before: string, diff: string): string {
  if (diff === '') return before;
  const old = linesOf(before);
  const result: string[] = [];
  let at = 0;
  const diffLines = linesOf(diff);
  if (!diffLines[0]?.startsWith('--- ') || !diffLines[1]?.startsWith('+++ ')) throw new Error('the diff has no heading');
  for (let i = 2; i < diffLines.length; ) {
    const heading = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n$/.exec(diffLines[i] as string);
    if (!heading) throw new Error(`not a hunk: ${diffLines[i]}`);
    const [oldStart, oldLength, newStart, newLength] = [1, 2, 3, 4].map((group) => Number(heading[group] ?? 1)) as [
      number,
      number,
      number,
      number,
    ];
    const from = oldLength === 0 ? oldStart : oldStart - 1;
    if (from < at) throw new Error(`hunks overlap: ${diffLines[i]}`);
    result.push(...old.slice(at, from));
    at = from;
    if (result.length !== (newLength === 0 ? newStart : newStart - 1)) throw new Error(`a new start that is wrong: ${diffLines[i]}`);
    const counts = { old: 0, new: 0 };
    for (i++; i < diffLines.length && !(diffLines[i] as string).startsWith('@@'); i++) {
      const sign = (diffLines[i] as string).charAt(0);
      const unfinished = diffLines[i + 1]?.startsWith('\\ No newline') === true;
      const line = unfinished ? (diffLines[i] as string).slice(1, -1) : (diffLines[i] as string).slice(1);
      if (!' -+'.includes(sign)) throw new Error(`a sign that is none: ${diffLines[i]}`);
      if (sign !== '+') {
        if (old[at] !== line) throw new Error(`line ${at + 1} is ${JSON.stringify(old[at])}, the diff has ${JSON.stringify(line)}`);
        at++;
        counts.old++;
      }
      if (sign !== '-') {
        result.push(line);
        counts.new++;
      }
      if (unfinished) i++;
    }
    if (counts.old !== oldLength || counts.new !== newLength) throw new Error(`lengths that are wrong: ${heading[0]}`);
  }
  return [...result, ...old.slice(at)].join('');
}

/** Lines with their newline; the last line may have none. */
function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
