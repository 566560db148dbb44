import { trimTrailing } from '../base/text/trim-trailing.ts';
import { sshConfigInvalid } from '../host/host-problems.ts';
import { matchPatternList } from './pattern.ts';

/**
 * A line of ssh_config other than an empty line or a comment. An `Include` contains the files it names, in
 * order.
 */
export interface SshConfigLine {
  readonly file: string;
  readonly line: number;
  readonly keyword: string;
  /** At least one. */
  readonly args: readonly string[];
  readonly included?: readonly SshConfigFile[];
}

export interface SshConfigFile {
  readonly path: string;
  readonly lines: readonly SshConfigLine[];
}

/**
 * The first value of each keyword, with its position; IdentityFile may have several. Keywords in lower case.
 */
export interface SshSettings {
  readonly first: ReadonlyMap<string, SshConfigLine>;
  readonly identityFiles: readonly SshConfigLine[];
  /** `Match` lines with unsupported criteria. */
  readonly unsupportedMatches: readonly SshConfigLine[];
}

/**
 * Splits the arguments of an ssh_config line: single and double quotes; backslash before a quote, a backslash
 * or a space; `#` at the start of a word.
 * @returns null for an unclosed quote
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
 * Evaluates the settings for one host: `Host` and `Match` blocks in order, the first value of each keyword
 * wins. A `Match final` causes a second pass with the resolved host name, as in ssh.
 * @throws AppError SSH_CONFIG_INVALID for an invalid `Match`
 * @see ssh_config(5), openssh readconf.c
 */
export function evaluateSshConfig(files: readonly SshConfigFile[], query: Pass['query']): SshSettings {
  const pass: Pass = {
    query,
    host: query.alias,
    final: false,
    wantsFinal: false,
    first: new Map<string, SshConfigLine>(),
    identityFiles: [],
    unsupportedMatches: [],
  };
  for (const file of files) walk(file, true, false, pass);
  if (!pass.wantsFinal) return pass;
  pass.host = hostNameOf(pass).toLowerCase();
  pass.final = true;
  // In the second pass the host name is fixed: ssh ignores a HostName in a final block.
  if (!pass.first.has('hostname'))
    pass.first.set('hostname', { file: '', line: 0, keyword: 'hostname', args: [pass.host.replaceAll('%', '%%')] });
  for (const file of files) walk(file, true, false, pass);
  return pass;
}

interface Pass {
  readonly query: {
    /** The host as the user wrote it, compared with `Host`. */
    readonly alias: string;
    /** An explicit user, which takes precedence over ssh_config. */
    readonly user?: string | undefined;
    readonly localUser: string;
    /** Expands the tokens in the value of HostName. */
    readonly expandHostName: (value: string, host: string) => string;
    /** Runs the command of `Match exec`; true when it succeeds. `settings` are those read so far. */
    readonly exec: (command: string, settings: SshSettings) => boolean;
  };
  /** The name compared with `Host`. */
  host: string;
  final: boolean;
  wantsFinal: boolean;
  readonly first: Map<string, SshConfigLine>;
  readonly identityFiles: SshConfigLine[];
  readonly unsupportedMatches: SshConfigLine[];
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

/** The first value wins. */
function take(line: SshConfigLine, pass: Pass): void {
  if (line.keyword === 'identityfile') {
    if (!pass.identityFiles.some(({ args }) => args[0] === line.args[0])) pass.identityFiles.push(line);
    return;
  }
  // Ssh treats `none` as unset.
  if (line.keyword === 'connecttimeout' && line.args[0] === 'none') return;
  const key = ALIASES[line.keyword] ?? line.keyword;
  if (!pass.first.has(key)) pass.first.set(key, line);
}

/** Keywords that share one setting: old names, and ProxyJump with ProxyCommand. */
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

const BARE_CRITERIA: Readonly<Record<string, (pass: Pass) => boolean>> = {
  all: () => true,
  canonical: (pass) => pass.final,
  final: (pass) => pass.final,
};

const CRITERIA: Readonly<Record<string, (argument: string, pass: Pass) => boolean>> = {
  host: (argument, pass) => matchesIgnoringCase(hostNameOf(pass), argument),
  originalhost: (argument, pass) => matchesIgnoringCase(pass.query.alias, argument),
  user: (argument, pass) =>
    matchPatternList(pass.query.user ?? pass.first.get('user')?.args[0] ?? pass.query.localUser, argument.split(',')),
  localuser: (argument, pass) => matchPatternList(pass.query.localUser, argument.split(',')),
  exec: (argument, pass) => pass.query.exec(argument, pass),
};

/** Criteria of OpenSSH 9.4 and later. They never match, and a warning is shown. */
const UNSUPPORTED_CRITERIA = new Set(['tagged', 'localnetwork', 'version', 'sessiontype', 'command']);

/** `final` requests the second pass even in a file that is included for other hosts only. */
function matchesMatchLine(line: SshConfigLine, pass: Pass, neverMatch: boolean): boolean {
  let matched = !neverMatch;
  for (const { name, negated, argument } of readCriteria(line)) {
    if (name === 'final') pass.wantsFinal = true;
    // A command runs only if its result can still change the match.
    if (!matched) continue;
    matched = UNSUPPORTED_CRITERIA.has(name)
      ? recordUnsupportedMatch(line, pass)
      : negated !== (argument === undefined ? BARE_CRITERIA[name]?.(pass) : CRITERIA[name]?.(argument, pass));
  }
  return matched;
}

/** `host=a,b` means `host a,b`; an argument may contain `=`. */
function readCriteria(line: SshConfigLine) {
  const criteria: { readonly name: string; readonly negated: boolean; readonly argument?: string }[] = [];
  const words = [...line.args];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const [, not = '', rawName = '', inline] = /^(!?)([^=]*)(?:=(.*))?$/s.exec(word) ?? [];
    const name = rawName.toLowerCase();
    if (Object.hasOwn(BARE_CRITERIA, name)) {
      criteria.push({ name, negated: not === '!' });
      continue;
    }
    if (!Object.hasOwn(CRITERIA, name) && !UNSUPPORTED_CRITERIA.has(name)) throw invalid(line, `unknown Match criterion "${rawName}"`);
    const argument = inline || words.shift();
    if (argument === undefined) throw invalid(line, `Match ${name} requires an argument`);
    criteria.push({ name, negated: not === '!', argument });
  }
  return criteria;
}

function recordUnsupportedMatch(line: SshConfigLine, pass: Pass): false {
  if (!pass.unsupportedMatches.includes(line)) pass.unsupportedMatches.push(line);
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
    hint: 'Use one of the criteria all, final, host, originalhost, user, localuser and exec, or use a Host block',
  });
}

/**
 * Splits the text of an ssh_config into lines. Files of `Include` are not read.
 * @param file its name in messages
 * @throws AppError SSH_CONFIG_INVALID at the first malformed line
 */
export function readSshConfigLines(text: string, file: string): readonly SshConfigLine[] {
  return text.split('\n').flatMap((line, index) => readLine(line, file, index + 1) ?? []);
}

/** `keyword arguments`, separated by whitespace or one `=`. */
function readLine(text: string, file: string, line: number): SshConfigLine | null {
  const trimmed = trimTrailing(text, ' \t\r\f').replace(/^[ \t]+/, '');
  if (trimmed === '' || trimmed.startsWith('#')) return null;
  const malformed = (message: string): Error =>
    sshConfigInvalid({ file, line, message, hint: 'Write a keyword followed by its arguments, with balanced quotes' });
  const [head = '', quoted, bare] = /^(?:"([^"]*)"|([^\s="]+))[ \t]*=?[ \t]*/.exec(trimmed) ?? [];
  const keyword = (quoted ?? bare ?? '').toLowerCase();
  if (keyword === '') throw malformed('missing keyword');
  const rest = trimmed.slice(head.length);
  // A command keeps its quotes for the shell.
  const args = keyword === 'proxycommand' ? [rest].filter(Boolean) : splitSshArguments(rest);
  if (args === null) throw malformed('unclosed quote');
  if (args.length === 0) throw malformed(`${keyword} has no argument`);
  return { file, line, keyword, args };
}
