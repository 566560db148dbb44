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

/** The commands of daily use, which the short help of the program lists. */
const DAILY_COMMANDS: ReadonlySet<string> = new Set('init join reset plan apply undo edit status upgrade dynamic fleet explain'.split(' '));

/** Options that the short help of a command only names, in addition to those for SSH. */
const DETAILS: ReadonlySet<string> = new Set(
  (
    '--again --allow-deprecated-api --allow-pod-loss --apiserver-advertise-address --apiserver-bind-port --backend --break-lock --bundle ' +
    '--ca-cert --cert-dir --certificate-key --cgroup-driver --cloud-config --cloud-provider --confirm-timeout --context ' +
    '--cri-socket --discovery-file --discovery-token --discovery-token-unsafe-skip-ca-verification --drain-timeout --dynamic-config-dir ' +
    '--feature-gates --fleet --force-drain --force-upload --image-repository --kube-api-qps --kubelet-config-dir --kubelet-extra-args ' +
    '--forget --gates --ignore-window --max-fail --min-ready --no-confirm --no-drain --no-headers --no-inspect-first --no-kubelet-config-dir --node-js --node-taints --notify --on-failure --order --parallel --patches --reason ' +
    '--require-signature --resolv-conf --revoked-signers --rootfs --service-dns-domain --settle --show-origin ' +
    '--skip-certificate-key-print --skip-phases --skip-token-print --take-over --tls-bootstrap-token --token-ttl --valid-for'
  ).split(' '),
);

/** The short help lists no more phases. */
const MAX_PHASES = 12;

/**
 * The layout of help: options under headings, wrapped to the width of the terminal. Global options are listed
 * for each command. Help is short unless `--all` is given: it names rare options, and lists the commands of daily use.
 */
export class HelpLayout extends Help {
  override minWidthToWrap = 10;
  override showGlobalOptions = true;
  /** List all options, commands and phases. */
  isComplete = false;
  /** The options of a command that runs with those of another one; null: its own. */
  listedOptions: (() => Option[]) | null = null;
  /** Completion lists the options and commands as well: only a printed help omits some. */
  #isShort = false;

  override formatHelp(command: Command, helper: Help): string {
    if (this.isComplete) return super.formatHelp(command, helper);
    this.#isShort = true;
    const text = super.formatHelp(command, helper);
    this.#isShort = false;
    const width = helper.helpWidth ?? DEFAULT_WIDTH;
    const more = [...this.#moreOptions(command), ...this.#moreCommands(command)].map((line) => helper.boxWrap(line, width));
    const sections = text.trimEnd().split('\n\n');
    const isCommands = (section: string): boolean => section.startsWith('Commands:');
    const ordered =
      command.parent === null
        ? [...sections.slice(0, 2), ...sections.slice(2).toSorted((a, b) => Number(isCommands(b)) - Number(isCommands(a)))]
        : sections;
    return `${[...ordered, ...(more.length === 0 ? [] : [more.join('\n')])].join('\n\n')}\n`;
  }

  /** The omitted options, by name; those for SSH by their heading. */
  #moreOptions(command: Command): readonly string[] {
    const omitted = this.visibleOptions(command).filter(isDetail);
    const names = omitted.flatMap(({ long, helpGroupHeading }) => (helpGroupHeading === HEADINGS.ssh ? [] : [long ?? '']));
    const all = `${[command.name(), ...ancestorNames(command)].toReversed().join(' ')} --help --all`;
    return [
      ...(names.length < omitted.length ? [`SSH options: ${all}`] : []),
      ...(names.length > 0 ? [`More options, see ${all}: ${names.join(', ')}`] : []),
    ];
  }

  #moreCommands(command: Command): readonly string[] {
    if (command.parent !== null) return [];
    const names = this.visibleCommands(command).flatMap((each) => (DAILY_COMMANDS.has(each.name()) ? [] : [each.name()]));
    return names.length === 0 ? [] : [`More commands, see ${command.name()} --help --all: ${names.join(', ')}`];
  }

  override visibleCommands(command: Command): Command[] {
    const all = super.visibleCommands(command);
    return this.#isShort && command.parent === null ? all.filter((each) => DAILY_COMMANDS.has(each.name())) : all;
  }

  override visibleOptions(command: Command): Option[] {
    const all = this.#allOptions(command);
    return this.#isShort ? all.filter((option) => !isDetail(option)) : all;
  }

  #allOptions(command: Command): Option[] {
    if (this.listedOptions !== null) return this.listedOptions();
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

function isDetail({ long, helpGroupHeading }: Option): boolean {
  return helpGroupHeading === HEADINGS.ssh || DETAILS.has(long ?? '');
}

function ancestorNames({ parent }: Command): readonly string[] {
  return parent === null ? [] : [parent.name(), ...ancestorNames(parent)];
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
export function addSections(command: Command, { notes, phases = [], examples }: HelpSections): Command {
  return command.addHelpText('after', ({ error }) => {
    const { getErrHelpWidth, getOutHelpWidth } = command.configureOutput();
    const width = (error ? getErrHelpWidth : getOutHelpWidth)?.() ?? DEFAULT_WIDTH;
    const helper = command.createHelp();
    helper.prepareContext({ error, helpWidth: width });
    const sections = [
      ...(notes === undefined ? [] : [helper.boxWrap(notes, width)]),
      ...phaseSection(command, phases, helper),
      ...(examples === undefined ? [] : [`Examples:\n${examples}`]),
    ];
    return `\n${sections.join('\n\n')}`;
  });
}

function phaseSection(command: Command, phases: readonly PhaseHelp[], helper: Help): readonly string[] {
  if (phases.length === 0) return [];
  if (phases.length <= MAX_PHASES || (helper instanceof HelpLayout && helper.isComplete))
    return [['Phases:', ...phaseLines(phases, helper)].join('\n')];
  return [`Phases: ${[command.name(), ...ancestorNames(command)].toReversed().join(' ')} --help --all lists all ${phases.length}`];
}

function phaseLines(phases: readonly PhaseHelp[], helper: Help): readonly string[] {
  const width = Math.min(Math.max(...phases.map(({ name }) => name.length)), termWidthOf(helper));
  return phases.map(({ name, short }) => helper.formatItem(name, width, short, helper));
}

/** The newest minor of the catalogue, which help does not load. */
export const NEWEST_KUBERNETES_MINOR = '1.37';
/** The minor that is used when none is given. */
export const DEFAULT_KUBERNETES_MINOR = '1.36';
