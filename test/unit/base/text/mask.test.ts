import { describe, expect, it } from 'vitest';
import { maskSecrets } from '../../../../src/base/text/mask.ts';

const KEY = '-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----';

describe('maskSecrets', () => {
  it.each([
    [
      'a block of YAML',
      'users:\n- name: u\n  user:\n    token: abc def\n    x: y\n',
      'users:\n- name: u\n  user:\n    token: [secret]\n    x: y\n',
    ],
    ['the first key of a list item', '- token: abc\n  name: u\n', '- token: [secret]\n  name: u\n'],
    ['flow style', 'user: {token: abc-1, x: y}\n', 'user: {token: [secret], x: y}\n'],
    ['JSON', '{"user":{"token":"a\\"b","client-key-data":"xx","n":1}}', '{"user":{"token":[secret],"client-key-data":[secret],"n":1}}'],
    ['a literal block', 'a:\n  password: |\n    line1\n\n    line2\n  next: 1\n', 'a:\n  password: [secret]\n  next: 1\n'],
    ['a folded block at the end', 'token: >-\n  folded\n', 'token: [secret]\n'],
    ['quotes', "token: 'it''s'\nsecret: \"a: b\"\n", 'token: [secret]\nsecret: [secret]\n'],
    ['any case', 'TOKEN: x\n', 'TOKEN: [secret]\n'],
    ['CRLF', 'token: abc\r\nz: 1\r\n', 'token: [secret]\r\nz: 1\r\n'],
    ['a trailing comment', 'token: abc # mine\n', 'token: [secret]\n'],
    [
      'HTTP headers of a kubelet',
      'a: 1\nstaticPodURLHeader:\n  Authorization:\n  - Bearer x\nb: 2\n',
      'a: 1\nstaticPodURLHeader: [secret]\nb: 2\n',
    ],
    ['HTTP headers in flow style', 'staticPodURLHeader: {X: [a,\n  "b}"]}\nb: 2\n', 'staticPodURLHeader: [secret]\nb: 2\n'],
    ['HTTP headers in JSON', '{"a":1,"staticPodURLHeader":{"X":["h}\\"h"]},"b":2}', '{"a":1,"staticPodURLHeader": [secret],"b":2}'],
    ['HTTP headers with an anchor', 'staticPodURLHeader: &h\n  X: [a]\nb: 2\n', 'staticPodURLHeader: [secret]\nb: 2\n'],
    ['a private key', `key: ${KEY}\nz: 1\n`, 'key: [secret]\nz: 1\n'],
    ['a private key that was cut off', `${KEY.slice(0, 40)}`, '[secret]'],
    ['a bootstrap token in a sentence', 'join with abcdef.0123456789abcdef now', 'join with [secret] now'],
    [
      'variables of a proxy, with any character in the password',
      'Environment="HTTPS_PROXY=http://user:p@ss/w\'d@proxy:3128" "NO_PROXY=a,b"\nhttp_proxy=http://proxy:3128 x@y\n',
      'Environment="HTTPS_PROXY=http://[secret]@proxy:3128" "NO_PROXY=a,b"\nhttp_proxy=http://proxy:3128 x@y\n',
    ],
    [
      'a bootstrap token under any key',
      'tlsBootstrapToken: abcdef.0123456789abcdef\nx: abcdef.0123456789abcdef\n',
      'tlsBootstrapToken: [secret]\nx: [secret]\n',
    ],
  ])('masks secrets in %s', (_, text, expected) => {
    expect(maskSecrets(text)).toBe(expected);
    expect(maskSecrets(maskSecrets(text))).toBe(expected);
  });

  it.each([
    ['a key without a value', 'token:\n  nested: 1\n'],
    ['an empty value', 'token: \nx: 1\n'],
    ['other keys', 'tokenFile: /x\nmy-token: y\nclient-certificate-data: abc\n'],
    ['file names that look a bit like tokens', 'kubelet.config.yaml\n'],
    ['nothing', ''],
  ])('keeps %s', (_, text) => {
    expect(maskSecrets(text)).toBe(text);
  });
});
