import { describe, expect, it } from 'vitest';
import { enclosingPaths } from '../../../src/kubelet/layers/layers.ts';

describe('enclosingPaths', () => {
  it.each<[string, string[]]>([
    ['', []],
    ['port', ['port']],
    ['a.b.c', ['a.b.c', 'a.b', 'a']],
    ['a[0].b', ['a[0].b', 'a[0]', 'a']],
    ['a[b.c]', ['a[b.c]', 'a[b', 'a']],
    ['a[b[c]', ['a[b[c]', 'a[b', 'a']],
    ['[', ['[']],
    ['.', ['.']],
    ['..[[', ['..[[', '..[', '..', '.']],
  ])('%j', (path, expected) => {
    expect(enclosingPaths(path)).toEqual(expected);
  });
});
