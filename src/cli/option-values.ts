import type { CommandOptions } from './command.ts';

/** The text of an option; undefined when it was not given. */
export function flagText(options: CommandOptions, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

/** The items of a repeatable option. */
export function flagList(options: CommandOptions, name: string): readonly string[] {
  const value = options[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

/** The value of an option that commander limits to some choices. */
export function flagChoice<const T extends string>(options: CommandOptions, name: string, choices: readonly [T, ...T[]]): T {
  const value = options[name];
  return choices.find((choice) => choice === value) ?? choices[0];
}

/** The number of an option that commander has parsed. */
export function flagNumber(options: CommandOptions, name: string, otherwise: number): number {
  const value = options[name];
  return typeof value === 'number' ? value : otherwise;
}
