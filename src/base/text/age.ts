const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000] as const;

/** As kubectl shows ages. @see k8s.io/apimachinery pkg/util/duration HumanDuration */
export function formatAge(ms: number): string {
  if (ms < -1_000) return '<invalid>';
  if (ms < 0) return '0s';
  const whole = (unit: number): number => Math.floor(ms / unit);
  const rest = (big: number, small: number, sign: string): string => {
    const count = Math.floor((ms % big) / small);
    return count === 0 ? '' : `${count}${sign}`;
  };
  const [seconds, minutes, hours, days] = [whole(SECOND), whole(MINUTE), whole(HOUR), whole(DAY)];
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return `${minutes}m${rest(MINUTE, SECOND, 's')}`;
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return `${hours}h${rest(HOUR, MINUTE, 'm')}`;
  if (hours < 48) return `${hours}h`;
  if (hours < 192) return `${days}d${rest(DAY, HOUR, 'h')}`;
  if (days < 365 * 2) return `${days}d`;
  const years = Math.floor(days / 365);
  const others = days % 365;
  return years >= 8 || others === 0 ? `${years}y` : `${years}y${others}d`;
}
