import type { Command } from 'commander';
import { pathOf } from '../../src/cli/command-line-error.ts';
import { wholeProgram } from './whole-program.ts';

/** A part of a help text: options under a heading, arguments, subcommands, phases, or examples. */
export interface HelpSection {
  /** Without the colon, e.g. `Cluster Access`. Empty: paragraphs. */
  readonly heading: string;
  /** The lines below the heading. */
  readonly lines: readonly string[];
}

/** The help of a command. */
export interface CommandHelp {
  /** Without the program name: `fleet plan`; empty for the program. */
  readonly path: string;
  readonly description: string;
  /** `kubeletadm fleet plan [options]`. */
  readonly usage: string;
  readonly sections: readonly HelpSection[];
  /** Subcommands, without `help`. */
  readonly commands: readonly CommandHelp[];
  /** The command runs phases, and its subcommands are these phases with the same options. */
  readonly isPhases: boolean;
}

/**
 * The help of the program and of all its commands.
 * @param width maximum length of the lines
 */
export async function commandHelp(width: number): Promise<CommandHelp> {
  const { program, helpOf } = await wholeProgram('kubeletadm', String(width));
  const read = (command: Command): CommandHelp => ({
    path: pathOf(command),
    description: command.description(),
    usage: [pathOf(command.parent ?? command), command.name(), command.usage()].filter(Boolean).join(' '),
    sections: sectionsOf(helpOf(command)),
    commands: command.commands.filter((each) => each.name() !== 'help').map(read),
    isPhases: command.name() === 'phase',
  });
  return read(program);
}

/** The sections of a help text, without usage and description. */
function sectionsOf(help: string): readonly HelpSection[] {
  const paragraphs = help.trimEnd().split('\n\n').slice(2);
  return paragraphs.map((paragraph) => {
    const [first = '', ...lines] = paragraph.split('\n');
    return /^[A-Z][A-Za-z ]*:$/.test(first) ? { heading: first.slice(0, -1), lines } : { heading: '', lines: [first, ...lines] };
  });
}
