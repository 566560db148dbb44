import type { Command, Option } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import type { CommandServices } from './command.ts';
import { commandFirst } from './command-first.ts';
import type { PartialLine, Values } from './complete-values.ts';
import { argumentValues, optionValues } from './complete-values.ts';

/** The word at the cursor: the value of an option, an argument, the name of an option, or behind `--`. */
type Cursor =
  | { readonly kind: 'value'; readonly option: Option; readonly prefix: string; readonly text: string }
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'verbatim' };

/** @see github.com/spf13/cobra ShellCompDirective */
const DIRECTIVES = { noSpace: 2, noFiles: 4, directories: 16 } as const;

/**
 * `__complete WORD...`: prints the values for the last word, one a line with a description after a tab, and in the
 * last line `:` with the directive of cobra's protocol. Nothing is written to standard error, and an error gives no
 * values. Only names of Nodes cause requests, with a short time limit.
 */
export async function runComplete(
  services: CommandServices,
  { program, words }: { readonly program: Command; readonly words: readonly string[] },
): Promise<ExitCode> {
  const silent = { ...services, output: { ...services.output, stderr: () => undefined } };
  const { line, cursor } = readLine(program, [...commandFirst(words.slice(0, -1).map(unquote), program), unquote(words.at(-1) ?? '')]);
  const values = await valuesAt(silent, line, cursor).catch((): Values => ({ items: [] }));
  const typed = cursor.kind === 'verbatim' ? '' : cursor.text;
  const before = values.isList === true ? typed.slice(0, typed.lastIndexOf(',') + 1) : '';
  const prefix = `${cursor.kind === 'value' ? cursor.prefix : ''}${before}`;
  const last = typed.slice(before.length);
  const given = new Set(before.split(','));
  const shown = values.items.filter(({ value }) => value.startsWith(last) && isPlain(value) && !given.has(value));
  const directive =
    (values.isPrefix === true ? DIRECTIVES.noSpace : 0) |
    (values.paths === undefined ? DIRECTIVES.noFiles : values.paths === 'directories' ? DIRECTIVES.directories : 0);
  const lines = shown.map(({ value, description }) => `${prefix}${value}${description ? `\t${firstLine(description)}` : ''}`);
  services.output.stdout([...lines, `:${directive}`].map((each) => `${each}\n`).join(''));
  return 0;
}

function readLine(program: Command, words: readonly string[]): { readonly line: PartialLine; readonly cursor: Cursor } {
  let command = program;
  const names: string[] = [];
  const args: string[] = [];
  const options = new Map<string, string>();
  const current = words.at(-1) ?? '';
  const line = (): PartialLine => ({ command, path: names.join(' '), args, options });
  for (let i = 0; i < words.length - 1; i++) {
    const word = words[i] as string;
    if (word === '--') return { line: line(), cursor: { kind: 'verbatim' } };
    if (!word.startsWith('-') || word === '-') {
      const next = args.length > 0 ? undefined : command.commands.find((one) => one.name() === word);
      if (next === undefined) args.push(word);
      else {
        command = next;
        names.push(word);
      }
      continue;
    }
    const { option, value } = readOption(command, word);
    if (option === undefined) continue;
    const takesNext = value === undefined && (option.required || (option.optional && !words[i + 1]?.startsWith('-')));
    if (takesNext && i === words.length - 2) return { line: line(), cursor: { kind: 'value', option, prefix: '', text: current } };
    const text = takesNext ? words[++i] : value;
    if (text !== undefined) options.set(option.long ?? '', text);
  }
  const { option, value } = current.startsWith('-') ? readOption(command, current) : {};
  if (option !== undefined && value !== undefined)
    return { line: line(), cursor: { kind: 'value', option, prefix: current.slice(0, current.length - value.length), text: value } };
  return { line: line(), cursor: { kind: 'word', text: current } };
}

/** `--name`, `--name=value`, `-n`, `-n=value` or `-nvalue`. */
function readOption(command: Command, word: string): { readonly option?: Option | undefined; readonly value?: string } {
  const own = optionsOf(command);
  const equals = word.indexOf('=');
  const name = equals < 0 ? word : word.slice(0, equals);
  const option = own.find(({ long, short }) => name === long || name === short);
  if (option !== undefined) return equals < 0 ? { option } : { option, value: word.slice(equals + 1) };
  const joined = own.find(({ short, required }) => required && short !== undefined && !word.startsWith('--') && word.startsWith(short));
  return joined === undefined ? {} : { option: joined, value: word.slice(2) };
}

function optionsOf(command: Command): readonly Option[] {
  return command.createHelp().visibleOptions(command);
}

async function valuesAt(services: CommandServices, line: PartialLine, cursor: Cursor): Promise<Values> {
  if (cursor.kind === 'verbatim') return { items: [], paths: 'files' };
  if (cursor.kind === 'value') return optionValues(services, line, cursor.option);
  const { command, args } = line;
  if (cursor.text.startsWith('-'))
    return { items: optionsOf(command).map(({ long, short, description }) => ({ value: long ?? short ?? '', description })) };
  const commands = args.length > 0 ? [] : command.createHelp().visibleCommands(command);
  const items = commands.map((each) => ({ value: each.name(), description: each.summary() || each.description() }));
  if (items.length > 0 && command.registeredArguments.length === 0) return { items };
  const values = await argumentValues(services, line);
  return { ...values, items: [...items, ...values.items] };
}

/** Names of a fleet file or a cluster that a shell would interpret are omitted. */
function isPlain(value: string): boolean {
  return /^[\w.,:@%+=/[\]*?!-]+$/.test(value);
}

function firstLine(text: string): string {
  return text.split(/[\n\t]/, 1)[0] ?? '';
}

/** A word as the shell reads it, for the simple case of quotes around all of it; bash passes quotes on. */
function unquote(word: string): string {
  return /^(['"])(.*)\1$/s.exec(word)?.[2] ?? word;
}
