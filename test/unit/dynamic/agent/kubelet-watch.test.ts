import { expect, it } from 'vitest';
import { assessProcess } from '../../../../src/dynamic/agent/kubelet-watch.ts';

const NOW = Date.parse('2030-01-01T00:10:00Z');
const seconds = (text: string): number => Date.parse(text) / 1000;
const READ: Parameters<typeof assessProcess>[0] = { isWhole: true, changedAt: seconds('2030-01-01T00:00:00Z'), ageMs: 300_000, now: NOW };

it.each<[string, Partial<Parameters<typeof assessProcess>[0]>, RegExp | null]>([
  ['accepts a process that was started after the file was written', {}, null],
  ['accepts a start in the same second', { changedAt: seconds('2030-01-01T00:05:00Z') }, null],
  ['rejects a file that was written later', { changedAt: seconds('2030-01-01T00:05:01Z') }, /written after the kubelet was started/],
  ['rejects a file with other content', { isWhole: false }, /changed or removed/],
  ['rejects an unknown start time', { ageMs: null }, /start time .* is not known/],
  ['ignores a clock that was set back', { changedAt: seconds('2031-01-01T00:00:00Z') }, null],
])('%s', (_, facts, why) => {
  const reported = assessProcess({ ...READ, ...facts });
  if (why === null) expect(reported).toBeNull();
  else expect(reported).toMatch(why);
});
