const UNITS = [
  { ms: 1_000, sign: 's' },
  { ms: 60_000, sign: 'm' },
  { ms: 3_600_000, sign: 'h' },
  { ms: 86_400_000, sign: 'd' },
] as const;

/** As kubectl shows ages. @see k8s.io/apimachinery pkg/util/duration HumanDuration */
export function formatAge(ms: number): string {
  if (ms < -1_000) return '<invalid>';
  if (ms < 0) return '0s';
  const whole = (unit: number): number => Math.floor(ms / unit);
  const both = (big: 1 | 2 | 3): string => {
    const { ms: unit, sign } = UNITS[big];
    const small = UNITS[big - 1] as (typeof UNITS)[number];
    const rest = Math.floor((ms % unit) / small.ms);
    return `${whole(unit)}${sign}${rest === 0 ? '' : `${rest}${small.sign}`}`;
  };
  const [seconds, minutes, hours, days] = [whole(1_000), whole(60_000), whole(3_600_000), whole(86_400_000)];
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return both(1);
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return both(2);
  if (hours < 48) return `${hours}h`;
  if (hours < 192) return both(3);
  if (days < 365 * 2) return `${days}d`;
  const years = Math.floor(days / 365);
  const rest = days % 365;
  return years >= 8 || rest === 0 ? `${years}y` : `${years}y${rest}d`;
}
