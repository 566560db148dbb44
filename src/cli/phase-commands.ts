import type { Command, Option } from 'commander';
import type { PhaseHelp } from '../kubeadm/workflows/phase-lists.ts';
import type { HelpLayout } from './help-layout.ts';

/** A phase, or a group of phases, as a command. */
interface PhaseNode {
  /** Null: a group of phases. */
  short: string | null;
  readonly below: Map<string, PhaseNode>;
}

interface PhaseCommands {
  /** Defines how the command of a phase is run, from the words of its name. */
  readonly run: (command: Command, words: readonly string[]) => void;
  /** Additional options of a group of phases and of all phases in the group, by the name of the group. */
  readonly options?: Readonly<Record<string, () => Option>>;
  /** Groups that are one phase in kubeadm, and its short description: their name runs the group. */
  readonly single?: Readonly<Record<string, string>>;
}

/** `control-plane` of `upgrade apply` and `upgrade node`, see kubeadm 1.36 cmd/phases/upgrade. */
export const SINGLE_UPGRADE_PHASES = { 'control-plane': 'Upgrade the static Pods of the control plane' };

/**
 * Defines a command for each phase below `phase`, so that help and completion list the phases as those of kubeadm:
 * `init phase certs apiserver`. All options are those of `phase`.
 * Started as kubeadm, the name of a group alone is an error, as in kubeadm: `init phase certs` writes nothing.
 * @param phase accepts the name of any phase as arguments
 */
export function definePhaseCommands(phase: Command, phases: readonly PhaseHelp[], { run, options = {}, single = {} }: PhaseCommands): void {
  const refusesGroups = rootOf(phase).name() === 'kubeadm';
  const define = (parent: Command, { below }: PhaseNode, words: readonly string[]): void => {
    if (words.length > 0 && below.size > 0) add(parent, 'all', [...words, 'all'], `Run all phases of ${words.join('/')}`);
    for (const [name, node] of below) {
      const own = [...words, name];
      define(add(parent, name, own, node.short), node, own);
    }
  };
  const add = (parent: Command, name: string, words: readonly string[], short: string | null): Command => {
    const own = short ?? single[words.join('/')] ?? null;
    const command = parent.command(name).description(own ?? `Run the phases of ${words.join('/')}`);
    const additional = options[words[0] ?? '']?.();
    if (additional !== undefined) command.addOption(additional);
    const layout: Partial<HelpLayout> = {
      listedOptions: () => [...(additional === undefined ? [] : [additional]), ...phase.createHelp().visibleOptions(phase)],
    };
    command.configureHelp({ ...command.configureHelp(), ...layout });
    if (own !== null || !refusesGroups) run(command, words);
    return command;
  };
  define(phase, treeOf(phases), []);
}

/** The tree of the phases, in their order. */
function treeOf(phases: readonly PhaseHelp[]): PhaseNode {
  const root = newNode();
  for (const { name, short } of phases) nodeAt(root, name).short = short;
  return root;
}

/** A group, until the list of phases has it. */
function newNode(): PhaseNode {
  return { short: null, below: new Map() };
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}

function nodeAt(root: PhaseNode, name: string): PhaseNode {
  return name.split('/').reduce((node, word) => {
    const found = node.below.get(word) ?? newNode();
    node.below.set(word, found);
    return found;
  }, root);
}

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
