import type { CommandHelp, HelpSection } from './command-help.ts';

/** Sections that many commands share, and that the documentation shows once. */
const SHARED = ['SSH', 'Global Options'];

/** The sections that the documentation shows once, in their most frequent form. */
export function sharedSections(program: CommandHelp): readonly HelpSection[] {
  return SHARED.flatMap((heading) => mostFrequent(heading, allBelow(program)) ?? []);
}

/** The command and all commands below it. */
export function allBelow(command: CommandHelp): readonly CommandHelp[] {
  return [command, ...command.commands.flatMap(allBelow)];
}

function mostFrequent(heading: string, commands: readonly CommandHelp[]): HelpSection | null {
  const counts = new Map<string, { readonly section: HelpSection; count: number }>();
  for (const section of commands.flatMap(({ sections }) => sections).filter((each) => each.heading === heading)) {
    const key = wordsOf(section);
    const entry = counts.get(key) ?? { section, count: 0 };
    entry.count += 1;
    counts.set(key, entry);
  }
  return [...counts.values()].toSorted((a, b) => b.count - a.count)[0]?.section ?? null;
}

/** The command and its subcommands; those of phases are a table, because they have the same options. */
export function documentedCommands(command: CommandHelp): readonly CommandHelp[] {
  return command.isPhases ? [command] : [command, ...command.commands.flatMap(documentedCommands)];
}

/** The width of the first column depends on the command. */
export function sameSection(a: HelpSection, b: HelpSection): boolean {
  return a.heading === b.heading && wordsOf(a) === wordsOf(b);
}

function wordsOf({ lines }: HelpSection): string {
  return lines.join(' ').split(/\s+/).join(' ');
}
