/**
 * The name of the phase for words on a command line: `control-plane apiserver` is `control-plane/apiserver`.
 * As with kubeadm, `all` after a group selects the group.
 * @returns undefined without words
 */
export function phaseName(words: readonly string[]): string | undefined {
  if (words.length === 0) return undefined;
  const [last, ...before] = [...words].reverse();
  return (last === 'all' && before.length > 0 ? words.slice(0, -1) : words).join('/');
}
