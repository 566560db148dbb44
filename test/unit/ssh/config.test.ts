import { describe, expect, it } from 'vitest';
import { evaluateSshConfig, type SshConfigFile, type SshConfigLine, splitSshArguments } from '../../../src/ssh/config.ts';

describe('splitSshArguments', () => {
  it.each([
    ['a b\tc', ['a', 'b', 'c']],
    ['~/.ssh/a#b', ['~/.ssh/a#b']],
    ['a # rest', ['a']],
    ['"a b" c', ['a b', 'c']],
    ["'a \"b' c", ['a "b', 'c']],
    ['a\\ b', ['a b']],
    ['"a\\"b"', ['a"b']],
    ['a\\b', ['a\\b']],
    ['pre"fix ed"x', ['prefix edx']],
    ['""', ['']],
    ['', []],
    ['"open', null],
    ["it's", null],
  ])('splits %j', (text, expected) => expect(splitSshArguments(text)).toEqual(expected));
});

/** A file with one `Keyword argument argument` per line. */
function file(path: string, text: string): SshConfigFile {
  const lines: SshConfigLine[] = [];
  for (const [index, raw] of text.trim().split('\n').entries()) {
    const [keyword = '', ...args] = raw.trim().split(' ');
    lines.push({ file: path, line: index + 1, keyword: keyword.toLowerCase(), args });
  }
  return { path, lines };
}

function including(outer: SshConfigFile, included: SshConfigFile): SshConfigFile {
  return { ...outer, lines: outer.lines.map((line) => (line.keyword === 'include' ? { ...line, included: [included] } : line)) };
}

function settingsOf(
  files: readonly SshConfigFile[],
  alias: string,
  more: { user?: string; exec?: (command: string) => boolean } = {},
): Record<string, string> {
  const { first } = evaluateSshConfig(files, {
    alias,
    localUser: 'me',
    expandHostName: (value, host) => value.replace('%h', host),
    exec: more.exec ?? (() => false),
    ...(more.user === undefined ? {} : { user: more.user }),
  });
  return Object.fromEntries([...first].map(([keyword, { args }]) => [keyword, args.join(' ')]));
}

describe('evaluateSshConfig', () => {
  it.each([
    ['the first value wins', 'Port 1\nHost *\nPort 2', 'n1', { port: '1' }],
    ['a block that does not match', 'Host n2\nPort 2', 'n1', {}],
    ['patterns', 'Host n? !n2\nPort 2', 'n1', { port: '2' }],
    ['a negated pattern', 'Host n? !n2\nPort 2', 'n2', {}],
    ['Host is case-sensitive', 'Host N1\nPort 2', 'n1', {}],
    ['Match host uses HostName', 'Host n1\nHostName %h.lan\nMatch host *.lan\nPort 2', 'n1', { hostname: '%h.lan', port: '2' }],
    [
      'Match originalhost uses the name on the command line',
      'Host n1\nHostName x\nMatch originalhost n1\nPort 2',
      'n1',
      { hostname: 'x', port: '2' },
    ],
    ['Match all', 'Match all\nPort 2', 'n1', { port: '2' }],
    ['Match negated', 'Match !host n2\nPort 2', 'n1', { port: '2' }],
    ['Match with = and lists', 'Match host=n1,n2 user=me\nPort 2', 'n1', { port: '2' }],
    ['Match user of an earlier block', 'User you\nMatch user you\nPort 2', 'n1', { user: 'you', port: '2' }],
    ['Match localuser', 'Match localuser m*\nPort 2', 'n1', { port: '2' }],
    ['Match final comes last', 'Match final\nPort 3\nHost *\nPort 2', 'n1', { hostname: 'n1', port: '2' }],
    [
      'Host sees the resolved name in the final pass',
      'Host n1\nHostName Real.lan\nMatch final all\nPort 3\nHost real.lan\nUser x',
      'n1',
      { hostname: 'Real.lan', port: '3', user: 'x' },
    ],
    ['ProxyCommand before ProxyJump', 'ProxyCommand nc\nProxyJump b', 'n1', { proxy: 'nc' }],
    ['ProxyJump before ProxyCommand', 'ProxyJump b\nProxyCommand nc', 'n1', { proxy: 'b' }],
  ])('%s', (_, text, alias, expected) => expect(settingsOf([file('config', text)], alias)).toEqual(expected));

  it('prefers a given user in Match user', () => {
    expect(settingsOf([file('c', 'User you\nMatch user me2\nPort 2')], 'n1', { user: 'me2' })).toMatchObject({ port: '2' });
  });

  it('runs Match exec only where its result matters', () => {
    const ran: string[] = [];
    const exec = (command: string): boolean => ran.push(command) > 0;
    const text = 'Match host n2 exec a\nPort 1\nMatch host n1 exec b\nPort 2\nMatch !exec c\nUser x';
    expect(settingsOf([file('c', text)], 'n1', { exec })).toEqual({ port: '2' });
    expect(ran).toEqual(['b', 'c']);
  });

  it.each([
    ['n1', { port: '2', user: 'inside', hostname: 'n1.lan' }],
    ['n2', { user: 'after' }],
  ])('applies included files only to hosts of the block: %s', (alias, expected) => {
    const outer = file('outer', 'Host n1\nInclude inner\nUser after\nHost n2\nUser after');
    const inner = file('inner', 'HostName n1.lan\nHost n1 n2\nPort 2\nUser inside');
    expect(settingsOf([including(outer, inner)], alias)).toEqual(expected);
  });

  it('makes the final pass for a Match final in a file included for other hosts', () => {
    const outer = file('outer', 'Host n2\nInclude inner\nMatch canonical\nUser last');
    expect(settingsOf([including(outer, file('inner', 'Match final\nPort 2'))], 'n1')).toEqual({ hostname: 'n1', user: 'last' });
  });

  it('returns to the block of the including file', () => {
    const outer = file('outer', 'Host n1\nInclude inner\nUser after');
    expect(settingsOf([including(outer, file('inner', 'Host other\nPort 2'))], 'n1')).toEqual({ user: 'after' });
  });

  it('collects identity files of all blocks, each once', () => {
    const files = [file('user', 'IdentityFile a\nHost n1\nIdentityFile b\nIdentityFile a'), file('system', 'IdentityFile c')];
    const { identityFiles } = evaluateSshConfig(files, { alias: 'n1', localUser: 'me', expandHostName: (v) => v, exec: () => false });
    expect(identityFiles.map(({ args }) => args[0])).toEqual(['a', 'b', 'c']);
  });

  it('treats criteria of newer versions as not matching, with a warning', () => {
    const settings = evaluateSshConfig([file('c', 'Match localnetwork 10.0.0.0/8\nPort 2')], {
      alias: 'n1',
      localUser: 'me',
      expandHostName: (v) => v,
      exec: () => false,
    });
    expect(settings.first.size).toBe(0);
    expect(settings.unsupportedMatches.map(({ line }) => line)).toEqual([1]);
  });

  it.each([
    ['Match', 'hosts n1', 'c:1:1: unknown Match criterion "hosts"'],
    ['Match', 'host', 'c:1:1: Match host requires an argument'],
  ])('refuses %s %s', (keyword, rest, message) => {
    expect(() => settingsOf([file('c', `${keyword} ${rest}`)], 'n1')).toThrow(message);
  });
});
