/**
 * The name of the phase that words on a command line are: `control-plane apiserver` is `control-plane/apiserver`. As with kubeadm `all` behind a group is the group.
 * @returns undefined without words
 */
export function phaseName(words: readonly string[]): string | undefined {
  if (words.length === 0) return undefined;
  const [last, ...before] = [...words].reverse();
  return (last === 'all' && before.length > 0 ? words.slice(0, -1) : words).join('/');
}
