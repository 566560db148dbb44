import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { maskPodSource } from '../../../../src/base/text/mask-pod-source.ts';

describe('maskPodSource', () => {
  it.each([
    ['a quote in a plain scalar', "a: {staticPodURLHeader: {Authorization: [Bearer it's-hush]}, b: 2}\nc: 3\n"],
    ['quotes and brackets in a plain scalar', `staticPodURLHeader: {X: [a 'b, "}"], Y: ["]}hush"], Z: ['it''s } hush']}\nc: 3\n`],
    ['a plain scalar before a quoted bracket', "staticPodURLHeader: {X: [a 'hush, '}', hush]}\nc: 3\n"],
    ['compact JSON', '{"staticPodURLHeader":{"X":["}]hush\\"}","hush"],"Y":["hush"]},"c":3}'],
    ['an anchor in flow style', 'staticPodURLHeader: &a {X: [hush]}\nc: 3\n'],
    ['a tag and an anchor', 'staticPodURLHeader: !!map &a\n  X: [hush]\nc: 3\n'],
    ['a complex key', '? staticPodURLHeader\n: {X: [hush]}\nc: 3\n'],
    ['a complex key with a comment', '? staticPodURLHeader # it\n: X: [hush]\n  Y: [hush]\nc: 3\n'],
    ['a quoted complex key in flow style', '{? "staticPodURLHeader" : {? \'}\' : [hush]}, c: 3}'],
    ['a comment in a flow collection', "staticPodURLHeader: {X: [a, # it's }}\n  hush]}\nc: 3\n"],
    ['a comment before the value', 'staticPodURLHeader: # }\n  # it\n  X: [hush]\nc: 3\n'],
    ['an anchor in a flow collection', "staticPodURLHeader: {X: &v '}hush', Y: hush}\nc: 3\n"],
    ['an alias', 'x: &h {X: [hush]}\nstaticPodURLHeader: *h\nc: 3\n'],
    ['an alias in a flow collection', 'x: &h\n  - hush\nstaticPodURLHeader: {X: *h}\nc: 3\n'],
    ['a list at the indentation of its key', 'staticPodURLHeader:\n- hush\nc: 3\n'],
    ['empty lines and CRLF', 'staticPodURLHeader:\r\n\r\n  X:\r\n\r\n  - hush\r\n\r\nc: 3\r\n'],
    ['another case', 'STATICPODURLHEADER: {X: [hush]}\nc: 3\n'],
    ['a URL with a tag', 'staticPodURL: !!str https://user:hush@pods/\nc: 3\n'],
    ['a URL as a complex key', "? staticPodURL\n: 'https://user:hush@pods/'\nc: 3\n"],
    ['a URL with a quote', "staticPodURL: https://u:it's-hush@pods/\nc: 3\n"],
    ['a URL in JSON with escaped slashes', '{"staticPodURL":"https:\\/\\/user:hush@pods\\/","c":3}'],
  ])('masks the value only: %s', (_, text) => {
    const masked = maskPodSource(text);
    expect(masked).not.toContain('hush');
    const { c, a } = parse(text.startsWith('{') ? masked.replace('[secret]@', '') : masked.replace(/\[secret\]@/, '')) as Record<
      string,
      unknown
    >;
    expect(c ?? a).toBe(c === undefined ? undefined : 3);
    expect(maskPodSource(masked)).toBe(masked);
  });

  it.each([
    ['a flow collection that is not closed', 'staticPodURLHeader: {X: [hush]\nc: hush\n'],
    ['a quote that is not closed', `staticPodURLHeader: {X: ["hush}}\nc: hush\n`],
    ['JSON inside a string', 'x: "{\\"staticPodURLHeader\\":{\\"X\\":[\\"}hush\\"]}}"\n'],
  ])('masks the rest of a damaged or nested text: %s', (_, text) => {
    expect(maskPodSource(text)).not.toContain('hush');
  });

  it('keeps other texts', () => {
    for (const text of ['', 'maxPods: 5\n', 'staticPodURL: https://pods.example/a@b\n', 'staticPodURLHeader is not set\n'])
      expect(maskPodSource(text)).toBe(text);
  });

  it.each([
    'staticPodURLHeader:{"',
    'staticPodURLHeader: {',
    "staticPodURLHeader: {a '",
    "staticPodURLHeader: {a ' '' ",
    'staticPodURLHeader:\n# ',
    'staticPodURLHeader ',
    'staticPodURLHeader # ',
    'staticPodURLHeader: *a &b ',
    'staticPodURLHeader: &a\n',
    'staticPodURL: &',
    'staticPodURL:a://',
    'staticPodURLHeader\n \n',
  ])('takes linear time: %j repeated', (part) => {
    const started = performance.now();
    maskPodSource(part.repeat(Math.ceil(400_000 / part.length)));
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});
