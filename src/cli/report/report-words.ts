import { nameRanges, sortedNames } from '../../base/text/name-ranges.ts';

/** `1 host`, `20 hosts`. */
export function hostCount(count: number, noun: 'host' | 'node' = 'host'): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `0.4 s`, `12 s`, `1m05s`, `2h03m`. */
export function durationText(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const two = (number: number): string => String(number).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m${two(seconds % 60)}s` : `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
}

/** `2026-11-23 16:45:12 UTC`. */
export function timeText(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** `2026-11-23`. */
export function dateText(time: Date): string {
  return time.toISOString().slice(0, 10);
}

/** Longer lists of hosts are folded. */
const MOST_CHARACTERS = 120;

/** Names and ranges of hosts, each with its comma, so that a line breaks only between them. */
export function hostList(hosts: readonly string[]): { readonly names: readonly string[]; readonly isLong: boolean } {
  const ranges = nameRanges(sortedNames(hosts));
  const names = ranges.map((range, i) => (i < ranges.length - 1 ? `${range},` : range));
  return { names, isLong: names.join(' ').length > MOST_CHARACTERS };
}

/** A command line without the command of `--notify`, which may have the URL of a webhook. */
export function withoutNotify(words: readonly string[]): readonly string[] {
  return words.map((word, i) => (words[i - 1] === '--notify' ? '[command]' : word.startsWith('--notify=') ? '--notify=[command]' : word));
}
