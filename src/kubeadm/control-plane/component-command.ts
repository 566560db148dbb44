import type { Arg } from '../../base/arg.ts';

/**
 * The command of a component: its default arguments sorted, without those that the user set; then the user's
 * arguments in the given order, including repeated ones.
 * @param own default arguments by name
 * @see kubeadm 1.36 util/arguments.go
 */
export function componentCommand(name: string, own: Readonly<Record<string, string>>, extraArgs: readonly Arg[] = []): readonly string[] {
  const given = new Set(extraArgs.map((arg) => arg.name));
  const kept = Object.keys(own)
    .filter((each) => !given.has(each))
    .sort()
    .map((each): Arg => ({ name: each, value: own[each] as string }));
  return [name, ...[...kept, ...extraArgs].map((arg) => `--${arg.name}=${arg.value}`)];
}
