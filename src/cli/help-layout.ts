import { type Command, Help, Option } from 'commander';
import type { PhaseHelp } from '../kubeadm/workflows/phase-lists.ts';

/** Headings of option groups, in one place so that every command uses the same ones. */
export const HEADINGS = {
  phases: 'Phases and Checks:',
  output: 'Output:',
  node: 'Node:',
  host: 'Host:',
  ssh: 'SSH:',
  cluster: 'Cluster Access:',
  controlPlane: 'Control Plane:',
  token: 'Bootstrap Token:',
  discovery: 'Discovery:',
  rollback: 'Rollback and Locking:',
  fleet: 'Fleet:',
  rollout: 'Rollout:',
  agent: 'Agent:',
  global: 'Global Options:',
} as const;

/** Wider terms are on a separate line, with the description below. Narrow terminals reduce this width. */
const MAX_TERM_WIDTH = 30;
const MAX_TERM_SHARE = 3 / 8;
/** Begins the default in the text of an option. */
const DEFAULT_MARK = ' (default: ';
/** Without a terminal and without COLUMNS. */
export const DEFAULT_WIDTH = 80;
/** Narrower terminals get text of this width. */
const LEAST_WIDTH = 40;

/**
 * The layout of help: options under headings, wrapped to the width of the terminal. Global options are listed
 * for each command.
 */
export class HelpLayout extends Help {
  override minWidthToWrap = 10;
  override showGlobalOptions = true;

  override visibleOptions(command: Command): Option[] {
    const isGlobal = ({ helpGroupHeading }: Option): boolean => helpGroupHeading === HEADINGS.global;
    const inherited = super.visibleGlobalOptions(command).filter(isGlobal);
    const isInherited = ({ long }: Option): boolean => inherited.some((one) => one.long === long);
    const own = super.visibleOptions(command).filter((option) => !isInherited(option));
    return [...own.filter((option) => !isGlobal(option)), ...inherited, ...own.filter(isGlobal)];
  }

  override visibleGlobalOptions(): Option[] {
    return [];
  }

  override padWidth(command: Command, helper: Help): number {
    return Math.min(super.padWidth(command, helper), termWidthOf(helper));
  }

  /** Choices and default in one bracket, without quotes: `(choices: text, json; default: text)`. */
  override optionDescription({ description, argChoices, defaultValue, defaultValueDescription, ...option }: Option): string {
    const start = description.endsWith(')') ? description.lastIndexOf(DEFAULT_MARK) : -1;
    const text = start < 0 ? description : description.slice(0, start);
    const written = start < 0 ? undefined : description.slice(start + DEFAULT_MARK.length, -1);
    const isShown = defaultValue !== undefined && (option.required || option.optional || typeof defaultValue === 'boolean');
    const standard = isShown ? (defaultValueDescription ?? String(defaultValue)) : written;
    const parts = [
      ...(argChoices === undefined ? [] : [`choices: ${argChoices.join(', ')}`]),
      ...(standard === undefined ? [] : [`default: ${standard}`]),
    ];
    return parts.length === 0 ? text : `${text} (${parts.join('; ')})`;
  }

  override formatItem(term: string, termWidth: number, description: string, helper: Help): string {
    if (helper.displayWidth(term) <= termWidth || description === '') return super.formatItem(term, termWidth, description, helper);
    return `  ${term}\n${super.formatItem('', termWidth, description, helper)}`;
  }
}

function termWidthOf({ helpWidth = DEFAULT_WIDTH }: Help): number {
  return Math.min(MAX_TERM_WIDTH, Math.floor(helpWidth * MAX_TERM_SHARE));
}

/** The option `-h, --help` of all commands. */
export function helpOption(): Option {
  return new Option('-h, --help', 'help for the command').helpGroup(HEADINGS.global);
}

/** Adds options to a command, under a heading of its help. */
export function addOptionGroup(command: Command, heading: string, add: (command: Command) => Command): Command {
  const previous = command.optionsGroup();
  add(command.optionsGroup(heading));
  return command.optionsGroup(previous);
}

/**
 * The width of help, from the environment variable COLUMNS.
 * @returns undefined without a positive integer: the width of the terminal applies then, or 80
 */
export function columnsOf(text: string | undefined): number | undefined {
  const columns = /^[1-9][0-9]{0,4}$/.test(text ?? '') ? Number(text) : undefined;
  return columns === undefined ? undefined : Math.max(columns, LEAST_WIDTH);
}

/** Text after the options of a command. */
interface HelpSections {
  /** Paragraphs, wrapped to the width of the terminal; indented lines are kept. */
  readonly notes?: string;
  readonly phases?: readonly PhaseHelp[];
  /** Command lines, printed verbatim so that they can be copied. */
  readonly examples?: string;
}

/** Adds notes, a phase list and examples to the help of a command, below its options. */
export function addSections(command: Command, { notes, phases, examples }: HelpSections): Command {
  return command.addHelpText('after', ({ error }) => {
    const { getErrHelpWidth, getOutHelpWidth } = command.configureOutput();
    const width = (error ? getErrHelpWidth : getOutHelpWidth)?.() ?? DEFAULT_WIDTH;
    const helper = command.createHelp();
    helper.prepareContext({ error, helpWidth: width });
    const sections = [
      ...(notes === undefined ? [] : [helper.boxWrap(notes, width)]),
      ...(phases === undefined || phases.length === 0 ? [] : [['Phases:', ...phaseLines(phases, helper)].join('\n')]),
      ...(examples === undefined ? [] : [`Examples:\n${examples}`]),
    ];
    return `\n${sections.join('\n\n')}`;
  });
}

function phaseLines(phases: readonly PhaseHelp[], helper: Help): readonly string[] {
  const width = Math.min(Math.max(...phases.map(({ name }) => name.length)), termWidthOf(helper));
  return phases.map(({ name, short }) => helper.formatItem(name, width, short, helper));
}

/** The newest minor of the catalogue, which help does not load. */
export const NEWEST_KUBERNETES_MINOR = '1.37';
/** The minor that is used when none is given. */
export const DEFAULT_KUBERNETES_MINOR = '1.36';
