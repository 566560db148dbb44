import { describe, expect, it } from 'vitest';
import { parseSshDestination } from '../../../src/ssh/destination.ts';

describe('parseSshDestination', () => {
  it.each([
    ['node1', { host: 'node1' }],
    ['root@10.0.0.1', { user: 'root', host: '10.0.0.1' }],
    ['root@10.0.0.1:2222', { user: 'root', host: '10.0.0.1', port: 2222 }],
    ['node1:22', { host: 'node1', port: 22 }],
    ['fd00::1', { host: 'fd00::1' }],
    ['[fd00::1]', { host: 'fd00::1' }],
    ['core@[fd00::1]:2222', { user: 'core', host: 'fd00::1', port: 2222 }],
    ['fe80::1%eth0', { host: 'fe80::1%eth0' }],
    ['ssh://node1', { host: 'node1' }],
    ['ssh://root@node1:2222/', { user: 'root', host: 'node1', port: 2222 }],
    ['SSH://do%40main@[::1]:1', { user: 'do@main', host: '::1', port: 1 }],
    ['DOM\\user$@node1', { user: 'DOM\\user$', host: 'node1' }],
    ['user@domain@node1', { user: 'user@domain', host: 'node1' }],
  ])('reads %s', (text, expected) => expect(parseSshDestination(text)).toEqual(expected));

  it.each([
    ['', 'there is no host in it'],
    ['root@', 'there is no host in it'],
    ['@node1', 'the user before @ is empty'],
    ['node1:0', '"0" is not a port'],
    ['node1:65536', '"65536" is not a port'],
    ['node1:', '"" is not a port'],
    ['[::1]:x', '"x" is not a port'],
    ['-oProxyCommand=sh', 'a character that no host name has'],
    ['-l@node1', 'begins with a hyphen'],
    ['a b@node1', 'the user has a space'],
    ['a;b@node1', 'another character that no user name has'],
    ['node1;x', 'a character that no host name has'],
    ['a$b', 'a character that no host name has'],
    ['a\\b', 'a character that no host name has'],
    ['fe80::1%`x`', 'a character that no host name has'],
    ['node\u00071', 'a character that no host name has'],
    ['node 1', 'a character that no host name has'],
    ['[::1', 'a character that no host name has'],
    ['ssh://a%zz@node1', 'badly encoded'],
    ['node1/path', 'a character that no host name has'],
  ])('refuses %j', (text, why) => expect(() => parseSshDestination(text)).toThrow(why));
});
