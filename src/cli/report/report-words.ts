import { formatAge } from '../../base/text/age.ts';

/** `1 host`, `20 hosts`. */
export function hostCount(count: number): string {
  return `${count} ${count === 1 ? 'host' : 'hosts'}`;
}

/** `0.4 s`, `12 s`, `4m10s`. */
export function durationText(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 60_000 ? `${Math.round(ms / 1000)} s` : formatAge(ms);
}

/** `2026-11-23 16:45:12 UTC`. */
export function timeText(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** `2026-11-23`. */
export function dateText(time: Date): string {
  return time.toISOString().slice(0, 10);
}
