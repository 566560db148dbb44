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
    ['', 'missing host'],
    ['root@', 'missing host'],
    ['@node1', 'the user before @ is empty'],
    ['node1:0', '"0" is not a valid port'],
    ['node1:65536', '"65536" is not a valid port'],
    ['node1:', '"" is not a valid port'],
    ['[::1]:x', '"x" is not a valid port'],
    ['-oProxyCommand=sh', 'contains an invalid character'],
    ['-l@node1', 'begins with a hyphen'],
    ['a b@node1', 'a character that is invalid in a user name'],
    ['a;b@node1', 'a character that is invalid in a user name'],
    ['node1;x', 'contains an invalid character'],
    ['a$b', 'contains an invalid character'],
    ['a\\b', 'contains an invalid character'],
    ['fe80::1%`x`', 'contains an invalid character'],
    ['node\u00071', 'contains an invalid character'],
    ['node 1', 'contains an invalid character'],
    ['[::1', 'contains an invalid character'],
    ['ssh://a%zz@node1', 'not valid percent-encoding'],
    ['node1/path', 'contains an invalid character'],
  ])('refuses %j', (text, why) => expect(() => parseSshDestination(text)).toThrow(why));
});
