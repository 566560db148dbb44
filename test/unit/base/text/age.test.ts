import { expect, it } from 'vitest';
import { formatAge } from '../../../../src/base/text/age.ts';

const [S, M, H, D] = [1_000, 60_000, 3_600_000, 86_400_000];

// The table of HumanDuration's own test.
it.each([
  [S, '1s'],
  [70 * S, '70s'],
  [190 * S, '3m10s'],
  [70 * M, '70m'],
  [47 * H, '47h'],
  [49 * H, '2d1h'],
  [(8 * 24 + 2) * H, '8d'],
  [367 * D, '367d'],
  [(365 * 2 + 25) * D, '2y25d'],
  [(365 * 8 + 2) * D, '8y'],
  [120 * S, '2m'],
  [10 * M, '10m'],
  [3 * H, '3h'],
  [8 * H, '8h'],
  [48 * H, '2d'],
  [-500, '0s'],
  [-5_000, '<invalid>'],
])('%i ms', (ms, text) => expect(formatAge(ms)).toBe(text));
