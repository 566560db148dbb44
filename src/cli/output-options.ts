import { type Command, Option } from 'commander';
import { HEADINGS } from './help-layout.ts';
import type { ColourChoice } from './output/services.ts';

const COLOURS = ['auto', 'always', 'never'] as const satisfies readonly ColourChoice[];

/** `--color`, an option of all commands. */
export function addColour(program: Command): Command {
  const option = new Option('--color <when>', 'colours: auto (on a terminal), always or never (default: FORCE_COLOR, NO_COLOR, auto)');
  return program.addOption(option.choices(COLOURS).helpGroup(HEADINGS.global));
}

/** The value of `--color` on a command line, which is needed before commander reads it; undefined: none, or another value. */
export function colourChoiceOf(argv: readonly string[]): ColourChoice | undefined {
  const found = argv.flatMap((word, i) => (word === '--color' ? [argv[i + 1]] : word.startsWith('--color=') ? [word.slice(8)] : []));
  return COLOURS.find((choice) => choice === found.at(-1));
}

/** Formats for continuous integration: a JUnit report, and workflow commands of GitHub Actions. */
export const CI_FORMATS = ['junit', 'github'] as const;

/** `-o` of commands that validate files. */
export const REPORT_FORMATS = ['text', 'json', 'sarif', ...CI_FORMATS] as const;

/** `--diff`. */
export function diffOption(description = 'with --dry-run: show the contents and diffs of files and objects'): Option {
  return new Option('--diff', description).helpGroup(HEADINGS.output);
}

/** `--diff` of a command that always shows its plan. */
export const DIFF_OF_PLAN = 'show the contents and diffs of files and objects';

/** The local file for the kubeconfig of an administrator. */
export function addKubeconfigOut(command: Command): Command {
  const option = new Option(
    '--kubeconfig-out <file>',
    'local file to write the kubeconfig of the cluster administrator to, readable by its owner only; a kubeconfig of another cluster is not replaced',
  );
  return command.addOption(option.helpGroup(HEADINGS.output));
}

/** `-o`; the first choice is the default. */
export function outputOption(choices: readonly [string, ...string[]], description = 'output format'): Option {
  return new Option('-o, --output <format>', description).choices(choices).default(choices[0]).helpGroup(HEADINGS.output);
}
