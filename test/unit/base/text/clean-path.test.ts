import { expect, it } from 'vitest';
import { cleanPath } from '../../../../src/base/text/clean-path.ts';

it.each([
  ['/a/b', '/a/b'],
  ['/a//b/', '/a/b'],
  ['/a/./b/.', '/a/b'],
  ['/a/../b', '/b'],
  ['/../a', '/a'],
  ['/', '/'],
  ['//', '/'],
])('%s is %s', (path, expected) => expect(cleanPath(path)).toBe(expected));
