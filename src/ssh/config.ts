import { sshConfigInvalid } from '../host/host-problems.ts';
import { matchPatternList } from './pattern.ts';

/** A line of ssh_config that is neither blank nor a comment. An `Include` carries the files it names, in order. */
export interface SshConfigLine {
  readonly file: string;
  /** Counts from 1. */
  readonly line: number;
  /** Lower case. */
  readonly keyword: string;
  /** At least one. */
  readonly args: readonly string[];
  readonly included?: readonly SshConfigFile[];
}

export interface SshConfigFile {
  readonly path: string;
  readonly lines: readonly SshConfigLine[];
}

/** What ssh_config is asked for, and what its conditions look at. */
export interface SshConfigQuery {
  /** The host as the user wrote it: what `Host` is compared with. */
  readonly alias: string;
  /** Given explicitly: wins over the file. */
  readonly user?: string;
  readonly localUser: string;
  /** Value of HostName with its tokens expanded. */
  readonly expandHostName: (value: string, host: string) => string;
  /** Runs the command of `Match exec`; true when it succeeds. `settings` are those found so far. */
  readonly exec: (command: string, settings: SshSettings) => boolean;
}

/** The first value obtained for each keyword, with its place; IdentityFile may have several. Keywords in lower case. */
export interface SshSettings {
  readonly first: ReadonlyMap<string, SshConfigLine>;
  readonly identityFiles: readonly SshConfigLine[];
  /** `Match` lines whose criteria are not supported. */
  readonly passedOver: readonly SshConfigLine[];
}

/**
 * Splits the arguments of an ssh_config line: quotes of both kinds, backslash before a quote, a backslash or a blank, `#` at the begin of a word.
 * @returns null when a quote is left open
 * @see openssh misc.c argv_split
 */
export function splitSshArguments(text: string): readonly string[] | null {
  const words: string[] = [];
  for (let i = 0; i < text.length; i++) {
    if (text[i] === ' ' || text[i] === '\t') continue;
    if (text[i] === '#') break;
    let word = '';
    let quote = '';
    for (; i < text.length; i++) {
      const character = text[i] as string;
      const next = text[i + 1];
      if (character === '\\' && (next === "'" || next === '"' || next === '\\' || (quote === '' && next === ' '))) {
        word += next;
        i++;
      } else if (quote === '' && (character === ' ' || character === '\t')) break;
      else if (quote === '' && (character === '"' || character === "'")) quote = character;
      else if (character === quote) quote = '';
      else word += character;
    }
    if (quote !== '') return null;
    words.push(word);
  }
  return words;
}

/**
 * Reads the settings for one host: `Host` and `Match` blocks in order, the first value of each keyword wins. A `Match final` makes a second
 * pass in which the resolved host name counts, as ssh does it.
 * @throws AppError SSH_CONFIG_INVALID for a `Match` that cannot be read
 * @see ssh_config(5), openssh readconf.c
 */
export function evaluateSshConfig(files: readonly SshConfigFile[], query: SshConfigQuery): SshSettings {
  const pass: Pass = {
    query,
    host: query.alias,
    final: false,
    wantsFinal: false,
    first: new Map<string, SshConfigLine>(),
    identityFiles: [],
    passedOver: [],
  };
  for (const file of files) walk(file, true, false, pass);
  if (!pass.wantsFinal) return pass;
  pass.host = hostNameOf(pass).toLowerCase();
  pass.final = true;
  // From here on the name is settled: a HostName in a final block comes too late.
  if (!pass.first.has('hostname'))
    pass.first.set('hostname', { file: '', line: 0, keyword: 'hostname', args: [pass.host.replaceAll('%', '%%')] });
  for (const file of files) walk(file, true, false, pass);
  return pass;
}

interface Pass {
  readonly query: SshConfigQuery;
  /** What `Host` is compared with. */
  host: string;
  final: boolean;
  wantsFinal: boolean;
  readonly first: Map<string, SshConfigLine>;
  readonly identityFiles: SshConfigLine[];
  readonly passedOver: SshConfigLine[];
}

function walk(file: SshConfigFile, startsActive: boolean, neverMatch: boolean, pass: Pass): void {
  let active = startsActive;
  for (const line of file.lines) {
    if (line.keyword === 'host') active = !neverMatch && matchPatternList(pass.host, line.args);
    else if (line.keyword === 'match') active = matchesMatchLine(line, pass, neverMatch);
    else if (line.keyword === 'include') for (const included of line.included ?? []) walk(included, active, !active, pass);
    else if (active) take(line, pass);
  }
}

/** Whichever comes first wins. */
function take(line: SshConfigLine, pass: Pass): void {
  if (line.keyword === 'identityfile') {
    if (!pass.identityFiles.some(({ args }) => args[0] === line.args[0])) pass.identityFiles.push(line);
    return;
  }
  // Ssh keeps `none` as if nothing had been said.
  if (line.keyword === 'connecttimeout' && line.args[0] === 'none') return;
  const key = ALIASES[line.keyword] ?? line.keyword;
  if (!pass.first.has(key)) pass.first.set(key, line);
}

/** Keywords that share one place: older names, and the two ways through another host. */
const ALIASES: Readonly<Record<string, string>> = {
  proxycommand: 'proxy',
  proxyjump: 'proxy',
  pubkeyacceptedkeytypes: 'pubkeyacceptedalgorithms',
  challengeresponseauthentication: 'kbdinteractiveauthentication',
  skeyauthentication: 'kbdinteractiveauthentication',
  tisauthentication: 'kbdinteractiveauthentication',
  dsaauthentication: 'pubkeyauthentication',
};

function hostNameOf(pass: Pass): string {
  const value = pass.first.get('hostname')?.args[0];
  return value === undefined ? pass.host : pass.query.expandHostName(value, pass.query.alias);
}

/** Criteria without an argument, and what makes them true. */
const BARE_CRITERIA: Readonly<Record<string, (pass: Pass) => boolean>> = {
  all: () => true,
  canonical: (pass) => pass.final,
  final: (pass) => pass.final,
};

/** Criteria with one argument. */
const CRITERIA: Readonly<Record<string, (argument: string, pass: Pass) => boolean>> = {
  host: (argument, pass) => matchesIgnoringCase(hostNameOf(pass), argument),
  originalhost: (argument, pass) => matchesIgnoringCase(pass.query.alias, argument),
  user: (argument, pass) =>
    matchPatternList(pass.query.user ?? pass.first.get('user')?.args[0] ?? pass.query.localUser, argument.split(',')),
  localuser: (argument, pass) => matchPatternList(pass.query.localUser, argument.split(',')),
  exec: (argument, pass) => pass.query.exec(argument, pass),
};

/** Known to OpenSSH 9.4 and later only. They count as not met, and that is said. */
const UNSUPPORTED_CRITERIA = new Set(['tagged', 'localnetwork', 'version', 'sessiontype', 'command']);

/** A `final` counts even in a file that is included for other hosts: it asks for the second pass. */
function matchesMatchLine(line: SshConfigLine, pass: Pass, neverMatch: boolean): boolean {
  let matched = !neverMatch;
  for (const { name, negated, argument } of readCriteria(line)) {
    if (name === 'final') pass.wantsFinal = true;
    // A command runs only where its answer still counts.
    if (!matched) continue;
    matched = UNSUPPORTED_CRITERIA.has(name)
      ? passOver(line, pass)
      : negated !== (argument === undefined ? BARE_CRITERIA[name]?.(pass) : CRITERIA[name]?.(argument, pass));
  }
  return matched;
}

interface Criterion {
  readonly name: string;
  readonly negated: boolean;
  readonly argument?: string;
}

/** `host=a,b` is `host a,b`; an argument may hold a `=` of its own. */
function readCriteria(line: SshConfigLine): readonly Criterion[] {
  const criteria: Criterion[] = [];
  const words = [...line.args];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const [, not = '', rawName = '', inline] = /^(!?)([^=]*)(?:=(.*))?$/s.exec(word) ?? [];
    const name = rawName.toLowerCase();
    if (Object.hasOwn(BARE_CRITERIA, name)) {
      criteria.push({ name, negated: not === '!' });
      continue;
    }
    if (!Object.hasOwn(CRITERIA, name) && !UNSUPPORTED_CRITERIA.has(name)) throw invalid(line, `Match has no criterion "${rawName}"`);
    const argument = inline || words.shift();
    if (argument === undefined) throw invalid(line, `Match ${name} has no argument`);
    criteria.push({ name, negated: not === '!', argument });
  }
  return criteria;
}

function passOver(line: SshConfigLine, pass: Pass): false {
  if (!pass.passedOver.includes(line)) pass.passedOver.push(line);
  return false;
}

function matchesIgnoringCase(text: string, patterns: string): boolean {
  return matchPatternList(text.toLowerCase(), patterns.toLowerCase().split(','));
}

function invalid(line: SshConfigLine, message: string): Error {
  return sshConfigInvalid({
    file: line.file,
    line: line.line,
    message,
    hint: 'Use all, final, host, originalhost, user, localuser or exec, or put the settings under Host',
  });
}
