import type { Command, Option } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import type { CommandServices } from './command.ts';
import { commandFirst } from './command-first.ts';

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

/** Reads the values of one kind. */
type Read = (services: CommandServices, line: PartialLine) => Values | Promise<Values>;

const NONE: Values = { items: [] };
const FILES: Values = { items: [], paths: 'files' };

/** The values of an option. */
function optionValues(services: CommandServices, line: PartialLine, option: Option): Values | Promise<Values> {
  if (option.argChoices !== undefined) {
    const items = option.argChoices.map((choice) => ({ value: choice.replace(/=TEMPLATE$/, '=') }));
    return { items };
  }
  const read = OPTIONS[option.long ?? ''];
  if (read !== undefined) return read(services, line);
  if (/[<[](?:dir|directory)[>\]]/.test(option.flags)) return { items: [], paths: 'directories' };
  return /[<[](?:file|path|socket)[>\]]/.test(option.flags) ? FILES : NONE;
}

/** The values of the next argument. */
function argumentValues(services: CommandServices, line: PartialLine): Values | Promise<Values> {
  const read = ARGUMENTS[line.path];
  if (read !== undefined) return read(services, line);
  const { registeredArguments: own } = line.command;
  const argument = own[Math.min(line.args.length, own.length - 1)];
  if (argument === undefined || (line.args.length >= own.length && !argument.variadic)) return NONE;
  if (argument.argChoices !== undefined) return { items: argument.argChoices.map((value) => ({ value })) };
  return /file|path|plan|^[ab]$/.test(argument.name()) ? FILES : NONE;
}

const OPTIONS: Readonly<Record<string, Read>> = {
  '--limit': async (services, line) => {
    const { hosts, groups } = await fleetNames(services, line);
    return { items: [...hosts, ...groups], isList: true };
  },
  '--group': async (services, line) => ({ items: (await fleetNames(services, line)).groups, isList: true }),
  '--host': async (services, line) =>
    line.path === 'fleet inventory' ? { items: (await fleetNames(services, line)).hosts } : sshDestinations(services, line),
  '--selector': (services, line) => (/^(?:dynamic|csr)/.test(line.path) ? nodeLabels(services, line) : fleetLabels(services, line)),
  '--skip-phases': async (_, line) => ({ items: await phasesOf(line), isList: true }),
  '--ignore-preflight-errors': async () => {
    const { FIXED_NAMES } = await import('../kubeadm/config/check-names.ts');
    return { items: ['all', ...FIXED_NAMES].map((value) => ({ value })), isList: true };
  },
  '--set': async () => ({
    items: (await fieldsOf()).map(({ value, description }) => ({ value: `${value}=`, description })),
    isPrefix: true,
  }),
  '--node-name': (services, line) => (/^(?:init|join)/.test(line.path) ? NONE : nodes(services, line)),
};

const moreNodes: Read = async (services, line) => {
  const { items } = await nodes(services, line);
  return { items: items.filter(({ value }) => !line.args.includes(value) && !line.args.includes(`node/${value}`)) };
};
const oneNode: Read = (services, line) => (line.args.length === 0 ? nodes(services, line) : NONE);
const hostsOfFile: Read = async (services, line) => ({
  items: (await fleetNames(services, line)).hosts.filter(({ value }) => !line.args.includes(value)),
});
const destinations: Read = async (services, line) => {
  const { items } = await sshDestinations(services, line);
  return { items: [...items, { value: 'localhost', description: 'the local host' }].filter(({ value }) => !line.args.includes(value)) };
};
/** A host or Node, or a word, then a field. */
const fieldOfHost = async (services: CommandServices, line: PartialLine, words: readonly Candidate[]): Promise<Values> => {
  if (line.args.length > 0) return { items: line.args.length === 1 ? await fieldsOf() : [] };
  const [{ items: hosts }, found] = await Promise.all([
    sshDestinations(services, line),
    nodes(services, line).catch((): Values => ({ items: [] })),
  ]);
  return { items: [...words, ...hosts, ...found.items.map(asNode)] };
};
const phase: Read = async (_, line) => {
  const before = line.args.map((arg) => `${arg}/`).join('');
  const below = (await phasesOf(line)).filter(({ value }) => value.startsWith(before));
  return { items: below.map((each) => ({ ...each, value: each.value.slice(before.length) })) };
};

/** Arguments, by the path of their command. */
const ARGUMENTS: Readonly<Record<string, Read>> = {
  'upgrade apply phase': phase,
  'upgrade node phase': phase,
  'dynamic assign': moreNodes,
  'dynamic reset': moreNodes,
  'dynamic undo': moreNodes,
  'dynamic status': moreNodes,
  status: hostsOfFile,
  'dynamic history': oneNode,
  'config from-node': oneNode,
  'dynamic enable': destinations,
  'dynamic disable': destinations,
  'dynamic inspect': (services, line) => (line.args.length === 0 ? destinations(services, line) : NONE),
  undo: hostsOfFile,
  'fleet confirm': hostsOfFile,
  'fleet revert': hostsOfFile,
  'fleet exec': () => NONE,
  'node explain': (services, line) => fieldOfHost(services, line, []),
  'config diff': async (services, line) => {
    const found = await nodes(services, line);
    return {
      items: [{ value: 'cluster', description: 'ConfigMap kube-system/kubelet-config' }, ...found.items.map(asNode)],
      paths: 'files',
    };
  },
  'config explain': async (_, line) => ({ items: line.args.length > 0 ? [] : [...(await fieldsOf()), ...(await gatesOf())] }),
  'certs renew': async (_, line) => {
    const { RENEWABLE_NAMES } = await import('../kubeadm/pki/renewable.ts');
    const names = line.args.length === 0 ? ['all', ...RENEWABLE_NAMES] : RENEWABLE_NAMES;
    return { items: names.filter((name) => !line.args.includes(name)).map((value) => ({ value })) };
  },
  explain: async (services, line) =>
    fieldOfHost(services, line, line.args.length > 0 ? [] : [...(await codesOf(services)), ...(await fieldsOf()), ...(await gatesOf())]),
  completion: (_, { args }) => ({ items: args.length > 0 ? [] : ['bash', 'zsh', 'fish'].map((value) => ({ value })) }),
};

function asNode({ value }: Candidate): Candidate {
  return { value: `node/${value}`, description: 'Node' };
}

async function phasesOf({ path }: PartialLine): Promise<readonly Candidate[]> {
  const { PHASE_LISTS } = await import('../kubeadm/workflows/phase-lists.ts');
  const found = Object.entries(PHASE_LISTS).find(([command]) => path === command || path.startsWith(`${command} `));
  return (found?.[1] ?? []).map(({ name, short }) => ({ value: name, description: short }));
}

/** The fields of the newest KubeletConfiguration. */
async function fieldsOf(): Promise<readonly Candidate[]> {
  const [{ DEFAULT_MINOR }, { loadCatalogue }] = await Promise.all([
    import('../kubelet/catalogue/catalogue.ts'),
    import('../kubelet/catalogue/load-catalogue.ts'),
  ]);
  const catalogue = await loadCatalogue();
  return [...catalogue.fields.keys()].filter((path) => catalogue.field(path, DEFAULT_MINOR) !== null).map((value) => ({ value }));
}

async function gatesOf(): Promise<readonly Candidate[]> {
  const { loadCatalogue } = await import('../kubelet/catalogue/load-catalogue.ts');
  return [...(await loadCatalogue()).gates.keys()].map((value) => ({ value, description: 'feature gate' }));
}

/** Codes of problems, with their cause. */
async function codesOf(services: CommandServices): Promise<readonly Candidate[]> {
  const { readProblemEntries } = await import('../base/problem-entries.ts');
  const entries = readProblemEntries(await services.problemPages());
  return entries.flatMap(({ codes, cause }) => codes.map((value) => ({ value, description: cause })));
}

/** The fleet file of `-f`, otherwise the default one; null: none, or standard input. */
async function fleetOf(services: CommandServices, { options, path }: PartialLine) {
  const { fleetFileOf, readFleet } = await import('../fleet/use-cases/load-fleet.ts');
  // Only in these commands -f names a fleet file.
  const given = options.get('--fleet') ?? (/^(?:fleet|plan|apply|csr)/.test(path) ? options.get('--file') : undefined);
  const file = fleetFileOf(given);
  return file === '-' || !(await services.input.exists(file)) ? null : readFleet(services, { file });
}

async function fleetNames(
  services: CommandServices,
  line: PartialLine,
): Promise<{ readonly hosts: readonly Candidate[]; readonly groups: readonly Candidate[] }> {
  const fleet = await fleetOf(services, line);
  return {
    hosts: (fleet?.hosts ?? []).map(({ name, groups }) => ({ value: name, description: groups.join(',') })),
    groups: (fleet?.groups ?? []).map((value) => ({ value, description: 'group' })),
  };
}

async function fleetLabels(services: CommandServices, line: PartialLine): Promise<Values> {
  const [fleet, { labelsOfHost }] = [await fleetOf(services, line), await import('../fleet/file/select.ts')];
  return labelValues((fleet?.hosts ?? []).map(labelsOfHost));
}

function labelValues(all: readonly Readonly<Record<string, string>>[]): Values {
  const pairs = new Set(all.flatMap((labels) => Object.entries(labels).map(([key, value]) => (value === '' ? key : `${key}=${value}`))));
  return { items: [...pairs].sort().map((value) => ({ value })), isList: true };
}

/** Hosts of the fleet file in the form of `--host`, and the aliases of ssh_config. */
async function sshDestinations(services: CommandServices, line: PartialLine): Promise<Values> {
  const fleet = await fleetOf(services, line).catch(() => null);
  const declared = (fleet?.hosts ?? []).map(({ name, ssh: { user, address, port } }): Candidate => {
    const host = port === undefined ? address : `${address.includes(':') ? `[${address}]` : address}:${port}`;
    return { value: user === undefined ? host : `${user}@${host}`, description: name };
  });
  const file = line.options.get('--ssh-config') ?? `${services.homeDirectory}/.ssh/config`;
  if (!(await services.input.exists(file))) return { items: declared };
  const { importSshConfig } = await import('../fleet/imports/import-ssh-config.ts');
  const { hosts } = importSshConfig(await services.readSshConfig(file)).inventory;
  const known = new Set(declared.map(({ value }) => value));
  return {
    items: [...declared, ...hosts.filter(({ name }) => !known.has(name)).map(({ name }) => ({ value: name, description: 'ssh_config' }))],
  };
}

async function nodes(services: CommandServices, line: PartialLine): Promise<Values> {
  return { items: (await listNodes(services, line)).map(({ metadata }) => ({ value: metadata.name })) };
}

async function nodeLabels(services: CommandServices, line: PartialLine): Promise<Values> {
  return labelValues((await listNodes(services, line)).map(({ metadata }) => metadata.labels ?? {}));
}

/** A shell waits for the values. */
const NODES_TIMEOUT_MS = 2_000;

/** The Nodes of the cluster of `--kubeconfig`; none after the time limit. */
async function listNodes(services: CommandServices, { options }: PartialLine) {
  const { lazyCluster } = await import('../kubeadm/use-cases/lazy-cluster.ts');
  const stop = new AbortController();
  const cluster = lazyCluster(services, { kubeconfig: options.get('--kubeconfig'), context: options.get('--context') });
  const listed = cluster.open().then((opened) => opened.list({ apiVersion: 'v1', kind: 'Node' }));
  const limit = services.clock.sleep(NODES_TIMEOUT_MS, stop.signal).then(() => null);
  try {
    return (await Promise.race([listed, limit]))?.items ?? [];
  } finally {
    stop.abort();
    limit.catch(() => undefined);
    listed.catch(() => undefined);
    void cluster.close().catch(() => undefined);
  }
}

/** A value for the word at the cursor. */
interface Candidate {
  readonly value: string;
  readonly description?: string | undefined;
}

/** Values for an option or argument. */
interface Values {
  readonly items: readonly Candidate[];
  /** The word is a comma-separated list of such values. */
  readonly isList?: boolean;
  /** The values are only beginnings: no space follows. */
  readonly isPrefix?: boolean;
  /** Also names of files, or of directories. */
  readonly paths?: 'files' | 'directories';
}

/** The command line up to the cursor. */
interface PartialLine {
  readonly command: Command;
  /** Names of the command, without the program: `fleet plan`. */
  readonly path: string;
  /** Arguments before the cursor. */
  readonly args: readonly string[];
  /** The last value of each option before the cursor, by its long name. */
  readonly options: ReadonlyMap<string, string>;
}
