import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { loadSshConfig } from '../../src/ssh/adapters/ssh-config.ts';
import { isSafeHostName, isSafeUserName } from '../../src/ssh/destination.ts';
import { resolveSshTarget, type SshConfig } from '../../src/ssh/resolve-target.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';
import { numberOfRuns } from '../support/thorough.ts';

const noSsh = requirement('ssh_config as ssh reads it', spawnSync('ssh', ['-V']).error === undefined ? null : 'ssh is not installed');

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'kubeletadm-ssh-config-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const full = join(directory, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text, { mode: 0o600 });
  return full;
}

describe('ssh_config, compared with ssh -G', () => {
  const quoted = (word: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    word.chain((each) => fc.constantFrom(...(each.includes(' ') ? ['"', "'"] : ['', '"', "'"])).map((quote) => `${quote}${each}${quote}`));
  const one = (...words: string[]): fc.Arbitrary<string> => quoted(fc.constantFrom(...words));
  const flag = one('yes', 'no', 'true', 'false');
  const option = fc
    .oneof(
      one('one.lan', '%h.lan', 'Two.LAN', '10.0.0.1', 'fd00::1').map((value) => ['HostName', value]),
      one('root', 'core', 'a b').map((value) => ['User', value]),
      one('22', '2222').map((value) => ['Port', value]),
      one('/k/a', '/k/b#c', '~/k d', '/k/e\\\\f').map((value) => ['IdentityFile', value]),
      flag.map((value) => ['IdentitiesOnly', value]),
      one('none', '/run/agent.sock').map((value) => ['IdentityAgent', value]),
      fc.constantFrom('none', 'b1', 'u@b2:33,b3', 'ssh://u@[fd00::2]:44').map((value) => ['ProxyJump', value]),
      one('alias-1', 'alias-2').map((value) => ['HostKeyAlias', value]),
      one('yes', 'no', 'ask', 'off', 'accept-new').map((value) => ['StrictHostKeyChecking', value]),
      one('5', '1m', '1h2m3s', 'none').map((value) => ['ConnectTimeout', value]),
      flag.map((value) => ['HashKnownHosts', value]),
      one('any', 'inet', 'inet6').map((value) => ['AddressFamily', value]),
      one('10.9.9.9').map((value) => ['BindAddress', value]),
      fc.array(one('/h/a', '/h/b c'), { minLength: 1, maxLength: 2 }).map((values) => ['UserKnownHostsFile', values.join(' ')]),
    )
    .chain(([keyword = '', value = '']) =>
      fc.record({
        indent: fc.constantFrom('', '  ', '\t'),
        keyword: fc.constantFrom(keyword, keyword.toLowerCase(), keyword.toUpperCase()),
        separator: fc.constantFrom(' ', '\t', '=', ' = '),
        end: fc.constantFrom('', ' ', ' # comment'),
        value: fc.constant(value),
      }),
    )
    .map(({ indent, keyword, separator, value, end }) => `${indent}${keyword}${separator}${value}${end}`);
  const pattern = fc.constantFrom('n1', 'n2', 'n?', '*', '!n1', '!n?', 'one.lan', '*.lan', 'N1');
  const patterns = fc.array(pattern, { minLength: 1, maxLength: 3 });
  const criterion = fc.oneof(
    fc.tuple(fc.constantFrom('host', 'originalhost', '!host'), patterns).map(([name, list]) => `${name} ${list.join(',')}`),
    fc.constantFrom(
      'user root',
      'user core,me',
      'user=root',
      '!user root',
      'localuser *',
      'localuser nobody-here',
      'exec true',
      '!exec "exit 1"',
      'exec "test %h = one.lan"',
      'final',
      'canonical',
      '!final',
    ),
  );
  const section = fc.oneof(
    { weight: 3, arbitrary: patterns.map((list) => `Host ${list.join(' ')}`) },
    { weight: 2, arbitrary: fc.array(criterion, { minLength: 1, maxLength: 2 }).map((list) => `Match ${list.join(' ')}`) },
    { weight: 1, arbitrary: fc.constant('Match all') },
    { weight: 1, arbitrary: fc.constant('# a comment') },
  );
  const block = fc.tuple(section, fc.array(option, { maxLength: 4 })).map(([head, options]) => [head, ...options]);
  const lines = fc
    .tuple(fc.array(option, { maxLength: 3 }), fc.array(block, { maxLength: 5 }))
    .map(([first, blocks]) => [...first, ...blocks.flat()]);
  const destination = fc.constantFrom('n1', 'n2', 'other', 'root@n1', 'core@one.lan');

  it.skipIf(noSsh)('reads the same as ssh (skipped without ssh)', async () => {
    const home = userInfo().homedir;
    await fc.assert(
      fc.asyncProperty(lines, lines, fc.boolean(), destination, async (text, included, includes, desired) => {
        const inner = write('generated.d/inner.conf', `${included.join('\n')}\n`);
        const path = write('generated', `${text.join('\n')}\n${includes ? `Include "${dirname(inner)}/*.conf"\nUser last\n` : ''}`);
        const { stdout, stderr, status } = spawnSync('ssh', ['-G', '-F', path, desired], { encoding: 'utf8' });
        // Files that ssh rejects are not compared.
        fc.pre(status === 0);
        const config = await loadSshConfig({ configFile: path, variables: {} });
        const target = resolveUnlessCircle(desired, config);
        fc.pre(target !== null);
        expect(asPrinted(target as SshTarget), stderr).toEqual(parseSshG(stdout, home));
      }),
      { numRuns: numberOfRuns(300) },
    );
  });

  /** ssh reads the settings of a jump host only when it connects. */
  function resolveUnlessCircle(destination: string, config: SshConfig): SshTarget | null {
    try {
      return resolveSshTarget(destination, config);
    } catch (error) {
      if (String(error).includes('form a loop')) return null;
      throw error;
    }
  }

  const DEFAULT_FILES = ['id_ed25519', 'id_ecdsa', 'id_rsa'].map((name) => `${userInfo().homedir}/.ssh/${name}`);

  /** The output of `ssh -G` as far as the program uses it. Only identity files are relative to ~. */
  function parseSshG(text: string, home: string): Record<string, unknown> {
    const all = text
      .trim()
      .split('\n')
      .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)] as const);
    const first = (keyword: string): string | undefined => all.find(([name]) => name === keyword)?.[1];
    const checking = first('stricthostkeychecking') ?? '';
    const jump = first('proxyjump');
    const files = all.filter(([name]) => name === 'identityfile').map(([, value]) => value.replace(/^~/, home));
    return {
      hostName: first('hostname'),
      user: first('user'),
      port: Number(first('port')),
      // The default of ssh has seven kinds of keys, four of them rare.
      identityFiles: files.length > 5 ? DEFAULT_FILES : files,
      identitiesOnly: first('identitiesonly') === 'yes',
      identityAgent: first('identityagent') ?? 'none',
      jumps: jump !== undefined && jump !== 'none',
      userKnownHostsFiles: first('userknownhostsfile'),
      strictHostKeyChecking: { true: 'yes', false: 'accept-new', ask: 'ask', 'accept-new': 'accept-new' }[checking],
      hostKeyAlias: first('hostkeyalias'),
      hashKnownHosts: first('hashknownhosts') === 'yes',
      connectTimeoutMs: first('connecttimeout') === 'none' ? 20_000 : Number(first('connecttimeout')) * 1000,
      addressFamily: first('addressfamily'),
      bindAddress: first('bindaddress'),
    };
  }

  function asPrinted(target: SshTarget): Record<string, unknown> {
    return {
      hostName: target.hostName,
      user: target.user,
      port: target.port,
      identityFiles: target.identityFiles,
      identitiesOnly: target.identitiesOnly,
      identityAgent: target.identityAgent ?? 'none',
      jumps: target.proxyJump.length > 0,
      userKnownHostsFiles: target.userKnownHostsFiles.join(' '),
      strictHostKeyChecking: target.strictHostKeyChecking,
      hostKeyAlias: target.hostKeyAlias ?? undefined,
      hashKnownHosts: target.hashKnownHosts,
      connectTimeoutMs: target.connectTimeoutMs,
      addressFamily: target.addressFamily,
      bindAddress: target.bindAddress ?? undefined,
    };
  }
});

describe('loadSshConfig', () => {
  const load = (configFile: string, home = directory) => loadSshConfig({ configFile, variables: {}, homeDirectory: home });

  it('reads included files, by pattern, in order, relative to ~/.ssh', async () => {
    write('home/.ssh/conf.d/20-b', 'User b\nPort 20\n');
    write('home/.ssh/conf.d/10-a', 'User a\n');
    write('home/.ssh/conf.d/.hidden', 'Port 1\n');
    write('home/.ssh/config', 'Include conf.d/* missing ~/.ssh/nothing/*\nPort 30\n');
    const config = await loadSshConfig({ variables: {}, homeDirectory: join(directory, 'home') });
    expect(resolveSshTarget('n1', config)).toMatchObject({ user: 'a', port: 20 });
  });

  it('needs no files in the default places', async () => {
    const config = await loadSshConfig({ variables: {}, homeDirectory: join(directory, 'absent') });
    expect(config.files.filter(({ path }) => !path.startsWith('/etc/'))).toEqual([]);
  });

  it('reads no file for none', async () => expect((await load('none')).files).toEqual([]));

  it('reads home and user from the passwd database, like ssh', async () => {
    const { environment } = await loadSshConfig({ configFile: 'none', variables: { HOME: '/elsewhere', USER: 'other' } });
    expect(environment).toMatchObject({ homeDirectory: userInfo().homedir, userName: userInfo().username });
  });

  it('runs the command of Match exec', async () => {
    const path = write('exec', 'Match exec "test %n = n1"\nPort 2\nMatch !exec false\nUser x\n');
    const config = await load(path);
    expect(resolveSshTarget('n1', config)).toMatchObject({ port: 2, user: 'x' });
    expect(resolveSshTarget('n2', config)).toMatchObject({ port: 22, user: 'x' });
  });

  it.each([
    ['an open quote', 'User ok\nHostName "n1', ':2:1: unclosed quote'],
    ['a keyword alone', 'User', ':1:1: user has no argument'],
    ['a keyword with nothing but a comment', 'User # me', ':1:1: user has no argument'],
    ['no keyword', '= x', ':1:1: missing keyword'],
    ['an Include of itself', 'Include ~/bad', ':1:1: Include is nested too deeply'],
  ])('rejects %s', async (_, text, message) => {
    const path = write('bad', text);
    await expect(load(path)).rejects.toThrow(`${path}${message}`);
  });

  it('rejects a missing file that was requested', async () => {
    await expect(load('/nonexistent/config')).rejects.toThrow(
      '/nonexistent/config: cannot be read: no such file or directory. Check the path and the permissions',
    );
  });

  it.each(['config', 'conf.d/a'])('rejects a file of the user that others can write to: %s', async (name) => {
    const home = mkdtempSync(join(directory, 'open-'));
    const at = (path: string): string => join(home.slice(directory.length + 1), '.ssh', path);
    write(at('config'), 'Include conf.d/*\n');
    write(at('conf.d/a'), 'Port 2\n');
    chmodSync(join(home, '.ssh', name), 0o666);
    await expect(loadSshConfig({ variables: {}, homeDirectory: home })).rejects.toThrow('other users can write to this file');
  });
});

describe('the command of Match exec', () => {
  /** An ssh_config whose command passes every value of a destination to a shell. */
  function config(more = ''): string {
    return write('exec', `${more}Match exec "test x%n%h%r%k = x1"\n  Port 1\n`);
  }
  const injected = (): string => join(directory, 'injected');
  /**
   * Without slashes and spaces, which are invalid in host names; the shell reads the path from its
   * environment.
   */
  const touch = (): string => 'touch${IFS}$INJECTED';
  beforeAll(() => {
    process.env.INJECTED = injected();
  });
  afterEach(() => rmSync(injected(), { force: true }));
  afterAll(() => {
    delete process.env.INJECTED;
  });

  it.each<[string, () => readonly string[]]>([
    ['a host', () => [`a$(${touch()})b`]],
    ['a host in backquotes', () => [`root@a\`${touch()}\`b`]],
    ['a host after a semicolon', () => [`a;${touch()};b`]],
    ['a host after a line end', () => [`a\n${touch()}\nb`]],
    ['a host in braces', () => [`a&{${touch()}}`]],
    ['a zone of an IPv6 address', () => [`fe80::1%$(${touch()})`]],
    ['a user', () => [`\`${touch()}\`@n1`]],
    ['a user after a pipe', () => [`a|${touch()}@n1`]],
    ['a hop', () => ['n1', `a$(${touch()})b`]],
  ])('receives no shell syntax from %s of the command line', async (_, destination) => {
    const [host = '', proxyJump] = destination();
    const read = await loadSshConfig({ configFile: config(), variables: {} });
    expect(() => resolveSshTarget(host, read, proxyJump === undefined ? {} : { proxyJump })).toThrow(/is not an SSH destination/);
    expect(existsSync(injected())).toBe(false);
  });

  it('receives no shell syntax from a user of a fleet file or an inventory', async () => {
    const read = await loadSshConfig({ configFile: config(), variables: {} });
    expect(() => resolveSshTarget('n1', read, { user: `a\`${touch()}\`` })).toThrow(/is not a valid user name/);
    expect(existsSync(injected())).toBe(false);
  });

  it('receives no shell syntax from a HostName', async () => {
    const read = await loadSshConfig({ configFile: config(`Host n1\n  HostName %h$(${touch()})\n`), variables: {} });
    expect(() => resolveSshTarget('n1', read)).toThrow(/exec:2:1: HostName .* is not a valid host name/);
    expect(existsSync(injected())).toBe(false);
  });

  function inventory(variables: Readonly<Record<string, string>>): string {
    write('hosts.json', JSON.stringify({ _meta: { hostvars: { n1: variables } } }));
    return 'imports:\n  - ansibleInventory: hosts.json\n';
  }

  it.each([
    ['a fleet file', (bad: string) => `hosts:\n  - {name: n1, address: "${bad}"}\n`],
    ['a user of a fleet file', (bad: string) => `hosts:\n  - {name: n1, ssh: {user: "${bad}"}}\n`],
    ['a bastion of a fleet file', (bad: string) => `hosts:\n  - {name: n1, ssh: {bastion: "${bad}"}}\n`],
    ['an inventory', (bad: string) => inventory({ ansible_host: bad })],
    ['a user of an inventory', (bad: string) => inventory({ ansible_user: bad })],
  ])('takes nothing from %s', async (_, hosts) => {
    for (const bad of [`fe80::1%$(${touch()})`, `a|${touch()}`, `a;${touch()}`]) {
      const file = write('fleet.yaml', `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\n${hosts(bad)}`);
      const { code, stderr } = await runCommand(['fleet', 'exec', '-f', file, '--ssh-config', config(), '--', 'true']);
      expect([code, existsSync(injected())], stderr).toEqual([2, false]);
      expect(stderr).toMatch(/\[FLEET_[A-Z_]+\]/);
    }
  });

  const noNameCheck = noSsh || !/contains invalid/.test(spawnSync('ssh', ['-G', '-F', 'none', 'a;b'], { encoding: 'utf8' }).stderr);
  it.skipIf(noNameCheck)('refuses the same characters in names as ssh', () => {
    const refusedBySsh = (...args: readonly string[]): boolean =>
      /contains invalid characters/.test(spawnSync('ssh', ['-G', '-F', 'none', ...args], { encoding: 'utf8' }).stderr);
    const characters = Array.from({ length: 127 }, (_, i) => String.fromCharCode(i + 1));
    const names = [
      ...characters.map((each) => `a${each}b`),
      ...[' ', '\\', '-', '$'].flatMap((each) => [`${each}b`, `a${each}`]),
      'a -b',
      'é',
    ];
    // OpenSSH before 10.1, without the fixes for CVE-2025-61984, refuses fewer characters.
    const isStrict = refusedBySsh('-l', 'a\u0001b', 'n1');
    const compare = (name: string, refusedHere: boolean, refused: boolean): void => {
      if (isStrict || refused) expect([name, refusedHere]).toEqual([name, refused]);
    };
    for (const name of names) {
      if (!/[@/:]/.test(name) && !name.startsWith('-')) compare(name, !isSafeHostName(name), refusedBySsh('--', name));
      compare(name, !isSafeUserName(name), refusedBySsh('-l', name, 'n1'));
    }
  });

  it('runs with the names of hosts and users', async () => {
    const seen = join(directory, 'seen');
    const read = await loadSshConfig({ configFile: write('names', `Match exec "printf '%n %h %r' > ${seen}"\n  Port 3\n`), variables: {} });
    expect(resolveSshTarget('DOM\\user$@n-1_x.lan', read).port).toBe(3);
    expect(readFileSync(seen, 'utf8')).toBe('n-1_x.lan n-1_x.lan DOM\\user$');
  });
});

describe('the patterns of Include, compared with ssh -G', () => {
  const NAMES = ['0', '1', '10', '9x', 'a', 'b', 'ab', 'Z', '-', ']', '[', '!', '^', 'a b', 'a]', '[a]', '.hidden', '[:digit:]', 'a\\b'];
  const piece = fc.constantFrom(
    '*',
    '?',
    '[',
    ']',
    '[]',
    '!',
    '^',
    'a',
    'b',
    '0-9',
    'a-',
    '-',
    'z-a',
    '[:digit:]',
    '[:alpha:]',
    '[[:upper:]]',
    '[!0-9]',
    '[0-9]*',
    '\\\\',
    '.',
    '0',
  );
  const pattern = fc.array(piece, { minLength: 1, maxLength: 5 }).map((pieces) => pieces.join(''));

  async function included(text: string): Promise<readonly [readonly string[], readonly string[] | null]> {
    const path = write('globs', `Include ${text}\n`);
    const { stdout, status } = spawnSync('ssh', ['-G', '-F', path, 'n1'], { encoding: 'utf8' });
    const ofSsh = [...stdout.matchAll(/^identityfile (\/included\/.*)$/gm)].map(([, file = '']) => file);
    const { identityFiles } = resolveSshTarget('n1', await loadSshConfig({ configFile: path, variables: {} }));
    return [identityFiles.filter((file) => file.startsWith('/included/')), status === 0 ? ofSsh : null];
  }

  it.skipIf(noSsh)('include the same files as ssh, in the same order', async () => {
    for (const name of NAMES) write(`glob.d/${name}.conf`, `IdentityFile "/included/${name.replaceAll('\\', '\\\\')}"\n`);
    for (const fixed of [
      '[0-9]*.conf',
      '[!0-9]*.conf',
      '[]a]*.conf',
      '[^a]*.conf',
      '?[]]*.conf',
      '[[:digit:]]*.conf',
      '\\\\[a]*.conf',
      '[a',
      '*',
    ]) {
      const [ours, theirs] = await included(`"${join(directory, 'glob.d')}/${fixed}"`);
      expect([fixed, ours]).toEqual([fixed, theirs]);
      if (fixed === '*') expect(ours).toHaveLength(NAMES.filter((name) => !name.startsWith('.')).length);
    }
    await fc.assert(
      fc.asyncProperty(pattern, fc.constantFrom('glob.d', 'glo[a-c].d', 'glob?[d]'), async (text, folder) => {
        const [ours, theirs] = await included(`"${join(directory, folder)}/${text}.conf"`);
        fc.pre(theirs !== null);
        expect(ours).toEqual(theirs);
      }),
      { numRuns: numberOfRuns(300) },
    );
  });

  it.skipIf(noSsh)('use the same port as ssh', async () => {
    write('numbers.d/10-edge.conf', 'Host edge\n  Port 2200\n');
    write('numbers.d/edge.conf', 'Host edge\n  Port 2201\n');
    const path = write('numbers', `Include "${join(directory, 'numbers.d')}/[0-9]*.conf"\n`);
    expect(spawnSync('ssh', ['-G', '-F', path, 'edge'], { encoding: 'utf8' }).stdout).toContain('\nport 2200\n');
    expect(resolveSshTarget('edge', await loadSshConfig({ configFile: path, variables: {} })).port).toBe(2200);
  });
});
