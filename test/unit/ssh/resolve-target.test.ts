import { describe, expect, it } from 'vitest';
import { type SshConfigLine, splitSshArguments } from '../../../src/ssh/config.ts';
import { resolveSshTarget, type SshConfig } from '../../../src/ssh/resolve-target.ts';
import { type SshTarget, unknownNameHint } from '../../../src/ssh/target.ts';

function config(text = '', variables: Record<string, string> = {}): SshConfig {
  const lines = text.split('\n').flatMap((raw, index): SshConfigLine[] => {
    const [, keyword, rest = ''] = /^\s*(\S+)\s+(.*)$/.exec(raw) ?? [];
    return keyword === undefined
      ? []
      : [{ file: 'config', line: index + 1, keyword: keyword.toLowerCase(), args: splitSshArguments(rest) ?? [] }];
  });
  return {
    files: [{ path: 'config', lines }],
    environment: {
      homeDirectory: '/home/me',
      workingDirectory: '/cwd',
      userName: 'me',
      userId: 1000,
      localHostName: 'desk.lan',
      variables,
    },
    exec: () => false,
  };
}

const DEFAULTS: SshTarget = {
  name: 'n1',
  hostName: 'n1',
  user: 'me',
  port: 22,
  identityFiles: ['/home/me/.ssh/id_ed25519', '/home/me/.ssh/id_ecdsa', '/home/me/.ssh/id_rsa'],
  identitiesOnly: false,
  identityAgent: null,
  proxyJump: [],
  userKnownHostsFiles: ['/home/me/.ssh/known_hosts', '/home/me/.ssh/known_hosts2'],
  globalKnownHostsFiles: ['/etc/ssh/ssh_known_hosts', '/etc/ssh/ssh_known_hosts2'],
  strictHostKeyChecking: 'ask',
  hostKeyAlias: null,
  hashKnownHosts: false,
  connectTimeoutMs: 20_000,
  addressFamily: 'any',
  bindAddress: null,
  configFiles: ['config'],
  warnings: [],
};

describe('the hint for an unknown host name', () => {
  it('names the ssh_config that was read, and the one of the import', () => {
    const target = resolveSshTarget('n1', config());
    expect(unknownNameHint(target)).toMatch(/; HostName was looked up in config \(--ssh-config FILE/);
    expect(unknownNameHint({ ...target, configFiles: [] })).toMatch(/; no ssh_config was read \(--ssh-config FILE/);
    expect(unknownNameHint({ ...target, importedFrom: 'config' })).toBe(unknownNameHint(target));
    expect(unknownNameHint({ ...target, importedFrom: '/my lab/ssh_config' })).toBe(
      "The host was imported from /my lab/ssh_config, but HostName was looked up in config. Pass --ssh-config '/my lab/ssh_config', or set sshConfig in the fleet file",
    );
  });
});

describe('resolveSshTarget', () => {
  it('has the defaults of ssh', () => expect(resolveSshTarget('n1', config())).toEqual(DEFAULTS));

  it.each<[string, string, string, Partial<SshTarget>]>([
    ['user and port of the destination', 'User x\nPort 1', 'you@n1:2222', { user: 'you', port: 2222 }],
    ['user and port of the file', 'User x\nPort 2222', 'n1', { user: 'x', port: 2222 }],
    ['HostName with a token', 'HostName %h.Example.COM', 'n1', { alias: 'n1', hostName: 'n1.example.com' }],
    ['IPv6', '', '[fd00::1]:23', { name: 'fd00::1', hostName: 'fd00::1', port: 23 }],
    [
      'identity files',
      'IdentityFile ~/%r@%h\nIdentityFile %d/k-%u-%L-%n-%i-%%\nIdentityFile rel',
      'n1',
      { identityFiles: ['/home/me/me@n1', '/home/me/k-me-desk-n1-1000-%', '/cwd/rel'] },
    ],
    ['no identity file', 'IdentityFile none', 'n1', { identityFiles: [] }],
    ['IdentitiesOnly', 'IdentitiesOnly yes', 'n1', { identitiesOnly: true }],
    [
      'known_hosts files',
      'UserKnownHostsFile ~/kh_%h "/a b"\nGlobalKnownHostsFile none',
      'n1',
      { userKnownHostsFiles: ['/home/me/kh_n1', '/a b'], globalKnownHostsFiles: [] },
    ],
    [
      'host key settings',
      'HostKeyAlias cluster\nHashKnownHosts true\nStrictHostKeyChecking accept-new',
      'n1',
      { hostKeyAlias: 'cluster', hashKnownHosts: true, strictHostKeyChecking: 'accept-new' },
    ],
    ['files of revoked keys', 'RevokedHostKeys ~/revoked_%h', 'n1', { revokedHostKeysFiles: ['/home/me/revoked_n1'] }],
    ['no file of revoked keys', 'RevokedHostKeys none', 'n1', {}],
    ['a time with units', 'ConnectTimeout 1m30s', 'n1', { connectTimeoutMs: 90_000 }],
    ['no time', 'ConnectTimeout none', 'n1', { connectTimeoutMs: 20_000 }],
    ['address family and local address', 'AddressFamily inet6\nBindAddress ::1', 'n1', { addressFamily: 'inet6', bindAddress: '::1' }],
    ['no ProxyCommand', 'ProxyCommand none\nProxyJump b', 'n1', { proxyJump: [] }],
  ])('%s', (_, text, destination, expected) => {
    expect(resolveSshTarget(destination, config(text))).toEqual({ ...DEFAULTS, ...expected });
  });

  it.each([
    ['the default', '', '/run/agent'],
    ['none', 'IdentityAgent none', null],
    ['by name', 'IdentityAgent SSH_AUTH_SOCK', '/run/agent'],
    ['a variable', 'IdentityAgent $OTHER', '/run/other'],
    ['a variable that is not set', 'IdentityAgent $NONE', null],
    ['a path with a variable', 'IdentityAgent ~/${DIR}/%r.sock', '/home/me/agents/me.sock'],
  ])('finds the agent: %s', (_, text, expected) => {
    const variables = { SSH_AUTH_SOCK: '/run/agent', OTHER: '/run/other', DIR: 'agents' };
    expect(resolveSshTarget('n1', config(text, variables)).identityAgent).toBe(expected);
  });

  it('lets overrides win over the file', () => {
    const text = 'User x\nPort 1\nIdentityFile ~/k\nProxyJump b\nStrictHostKeyChecking yes\nUserKnownHostsFile a\nConnectTimeout 5';
    const target = resolveSshTarget('n1', config(text), {
      name: 'worker-1',
      user: 'core',
      port: 2,
      identityFiles: ['~/mine'],
      proxyJump: 'none',
      strictHostKeyChecking: 'accept-new',
      userKnownHostsFiles: ['kh'],
      connectTimeoutMs: 1,
    });
    expect(target).toMatchObject({
      name: 'worker-1',
      user: 'core',
      port: 2,
      identityFiles: ['/home/me/mine', '/home/me/k'],
      proxyJump: [],
      strictHostKeyChecking: 'accept-new',
      userKnownHostsFiles: ['/cwd/kh'],
      connectTimeoutMs: 1,
    });
  });

  it('warns that StrictHostKeyChecking no is accept-new', () => {
    const { strictHostKeyChecking, warnings } = resolveSshTarget('n1', config('Port 2\nStrictHostKeyChecking no'));
    expect(strictHostKeyChecking).toBe('accept-new');
    expect(warnings).toMatchObject([{ severity: 'warning', position: { line: 2 } }]);
  });

  it.each(['CertificateFile ~/x', 'KnownHostsCommand /x', 'CanonicalizeHostname yes', 'Match tagged x'])('warns about %s', (text) => {
    expect(resolveSshTarget('n1', config(text)).warnings).toMatchObject([
      { code: 'SSH_CONFIG_UNSUPPORTED', position: { file: 'config', line: 1 } },
    ]);
  });

  it.each([
    [
      'ProxyCommand ssh -W %h:%p -q b',
      'ProxyCommand is not supported. Use "ProxyJump [user@]host[:port]" instead, or --ssh-transport openssh',
    ],
    ['ProxyCommand ssh -W [%h]:%p core@b', 'ProxyCommand is not supported. Use "ProxyJump core@b" instead, or --ssh-transport openssh'],
    ['ProxyCommand ssh b -W %h:%p', 'Use "ProxyJump b" instead, or --ssh-transport openssh'],
    ['Port 0', '"0" is not a valid port'],
    ['IdentityFile ~/%X', 'identityfile has an unknown token %X'],
    ['IdentityFile ${NOPE}/x', 'the environment variable NOPE is not set'],
    ['IdentityFile ~root/x', 'refers to the home directory of another user'],
    ['StrictHostKeyChecking maybe', 'invalid value "maybe" of stricthostkeychecking'],
    ['ConnectTimeout soon', '"soon" is not a valid time'],
  ])('refuses %s', (text, message) => {
    expect(() => resolveSshTarget('n1', config(text))).toThrow(message);
    expect(() => resolveSshTarget('n1', config(text))).toThrow('config:1:1');
  });
});

describe('the policy of ssh_config', () => {
  const policyOf = (text: string) => resolveSshTarget('n1', config(text)).policy;

  it.each([
    ['a list', 'Ciphers aes256-ctr,unknown,aes128-ctr', { ciphers: ['aes256-ctr', 'aes128-ctr'] }],
    ['a list that adds', 'MACs +hmac-sha1', { macs: expect.arrayContaining(['hmac-sha2-256', 'hmac-sha1']) }],
    ['a list that removes by patterns', 'KexAlgorithms -diffie*,ecdh*', { kex: ['curve25519-sha256', 'curve25519-sha256@libssh.org'] }],
    [
      'a list in front',
      'Ciphers ^aes256-ctr',
      {
        ciphers: [
          'aes256-ctr',
          'aes128-gcm@openssh.com',
          'aes256-gcm@openssh.com',
          'aes128-ctr',
          'aes192-ctr',
          'chacha20-poly1305@openssh.com',
        ],
      },
    ],
    [
      'host keys in order',
      'HostKeyAlgorithms rsa-sha2-256,ssh-ed25519',
      { hostKeys: { names: ['rsa-sha2-256', 'ssh-ed25519'], isOrdered: true } },
    ],
    [
      'host keys, those that are known first',
      'HostKeyAlgorithms -ecdsa*',
      { hostKeys: { names: ['ssh-ed25519', 'rsa-sha2-512', 'rsa-sha2-256'], isOrdered: false } },
    ],
    ['an older name', 'PubkeyAcceptedKeyTypes ssh-ed25519\nPubkeyAcceptedAlgorithms ssh-rsa', { userKeys: ['ssh-ed25519'] }],
    ['logins that are switched off', 'PasswordAuthentication no\nSkeyAuthentication no', { methods: ['publickey'] }],
    ['logins in order', 'PreferredAuthentications hostbased,password,publickey', { methods: ['password', 'publickey'] }],
    ['logins that are switched on', 'PubkeyAuthentication unbound\nPasswordAuthentication yes', undefined],
    ['short RSA keys', 'RequiredRSASize 512', { minimalRsaBits: 1024 }],
  ])('%s', (_, text, expected) => expect(policyOf(text)).toEqual(expected));

  it.each([
    'Ciphers arcfour',
    'MACs -*',
    'HostKeyAlgorithms sk-*',
    'PubkeyAuthentication no\nPasswordAuthentication no\nKbdInteractiveAuthentication no',
  ])('without any allowed method is rejected, except for the system client: %s', (text) => {
    expect(() => resolveSshTarget('n1', config(text))).toThrow(
      /config:1:1: .* allows no (?:algorithm|authentication method) that the built-in SSH client supports\. .*--ssh-transport openssh/,
    );
    expect(resolveSshTarget('n1', config(text), { client: 'openssh' }).policy).toBeUndefined();
  });
});

describe('ProxyJump', () => {
  const names = (target: SshTarget): string[] => target.proxyJump.map(({ user, hostName, port }) => `${user}@${hostName}:${port}`);

  it.each([
    ['one hop with settings of its own', 'Host n1\nProxyJump b\nHost b\nHostName bastion\nUser jump', ['jump@bastion:22']],
    ['several hops, the nearest first', 'Host n1\nProxyJump a,you@b:33', ['me@a:22', 'you@b:33']],
    ['hops before the first hop', 'Host n1\nProxyJump b\nHost b\nProxyJump a', ['me@a:22', 'me@b:22']],
    ['no hops before later hops', 'Host n1\nProxyJump b,c\nHost c\nProxyJump a', ['me@b:22', 'me@c:22']],
    ['none, which comes first', 'ProxyJump none\nHost n1\nProxyJump b', []],
    ['a URI', 'Host n1\nProxyJump ssh://you@b:33', ['you@b:33']],
    ['tokens', 'Host n1\nProxyJump %r@gw-%h', ['me@gw-n1:22']],
    ['an exempted jump host', 'Host b\nProxyJump none\nHost *\nProxyJump b', ['me@b:22']],
  ])('%s', (_, text, expected) => expect(names(resolveSshTarget('n1', config(text)))).toEqual(expected));

  it('does not apply user, port and keys of the host to jump hosts', () => {
    const target = resolveSshTarget('n1', config('Host n1\nProxyJump b'), {
      user: 'core',
      port: 2,
      identityFiles: ['/k'],
      strictHostKeyChecking: 'accept-new',
      userKnownHostsFiles: ['/kh'],
    });
    expect(target.proxyJump).toMatchObject([{ user: 'me', port: 22, strictHostKeyChecking: 'accept-new', userKnownHostsFiles: ['/kh'] }]);
    expect(target.proxyJump[0]?.identityFiles).not.toContain('/k');
  });

  it('reports the loop', () => {
    expect(() => resolveSshTarget('n1', config('Host *\nProxyJump b'))).toThrow(
      'the ProxyJump settings form a loop: me@n1:22 -> me@b:22 -> me@b:22',
    );
  });
});
