import { defineFact, type Fact } from '../facts/fact.ts';

/** An assignment of `InhibitDelayMaxSec`, the longest delay of a shutdown by a lock. */
export interface DelayLimit {
  readonly path: string;
  /** As written; empty: the default. */
  readonly value: string;
  /** Infinity: no limit. */
  readonly seconds: number;
}

/** systemd-logind of a host. Null: unknown. */
export interface LogindFacts {
  /** All assignments in the order in which logind reads them; the last one wins. */
  readonly limits: readonly DelayLimit[] | null;
  /** Whether logind responds on the system bus, which the kubelet needs to delay a shutdown. */
  readonly isResponding: boolean | null;
}

export const LOGIND_NAME = 'org.freedesktop.login1';
export const LOGIND_OBJECT = '/org/freedesktop/login1';

/** Two commands that change nothing. */
export const LOGIND: Fact<LogindFacts> = defineFact(
  {
    config: { kind: 'command', argv: ['systemd-analyze', '--no-pager', 'cat-config', 'systemd/logind.conf'] },
    limit: {
      kind: 'command',
      argv: ['busctl', 'get-property', LOGIND_NAME, LOGIND_OBJECT, `${LOGIND_NAME}.Manager`, 'InhibitDelayMaxUSec'],
    },
  },
  ({ config, limit }) => ({
    limits: config.exitCode === 0 ? delayLimits(config.stdout) : null,
    // Without busctl, exit code 127.
    isResponding: limit.exitCode === 0 ? true : limit.exitCode === 1 ? false : null,
  }),
);

const DEFAULT_SECONDS = 5;

/** The files in their order, each after a line `# PATH`. Values that logind ignores are skipped. */
export function delayLimits(output: string): readonly DelayLimit[] {
  const limits: DelayLimit[] = [];
  let path = '';
  let section = '';
  for (const line of output.split('\n').map((one) => one.trim())) {
    if (line.startsWith('# /') && /logind\.conf(?:$|\.d\/)/.test(line)) [path, section] = [line.slice(2), ''];
    else if (line.startsWith('[')) section = line;
    else if (section === '[Login]' && line.startsWith('InhibitDelayMaxSec')) {
      const at = line.indexOf('=');
      const value = line.slice(at + 1).trim();
      const seconds = value === '' ? DEFAULT_SECONDS : parseTimeSpan(value);
      if (at !== -1 && seconds !== null) limits.push({ path, value, seconds });
    }
  }
  return limits;
}

/** The kubelet writes its limit to this file if the present limit is too low (pkg/kubelet/nodeshutdown/systemd, 1.36). */
const KUBELET_FILE = '99-kubelet.conf';

/**
 * The assignment that keeps a kubelet from delaying a shutdown for this time: systemd sorts drop-in files of all
 * directories by their name, so that a file whose name follows 99-kubelet.conf wins over the kubelet's file.
 * @returns null: the delay would be possible
 */
export function limitBelow(limits: readonly DelayLimit[], seconds: number): DelayLimit | null {
  if ((limits.at(-1)?.seconds ?? DEFAULT_SECONDS) >= seconds) return null;
  const later = limits.findLast(({ path }) => path.includes('.conf.d/') && path.slice(path.lastIndexOf('/') + 1) > KUBELET_FILE);
  return later === undefined || later.seconds >= seconds ? null : later;
}

const SMALL_UNITS = { us: 1e-6, usec: 1e-6, µs: 1e-6, ms: 1e-3, msec: 1e-3 };
const UNITS: Readonly<Record<string, number>> = { ...SMALL_UNITS, '': 1, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** Seconds of a time span of systemd.time(7), such as `1min 30s`; null: invalid. */
export function parseTimeSpan(text: string): number | null {
  if (text.trim() === 'infinity') return Number.POSITIVE_INFINITY;
  const parts = [...text.matchAll(/(\d{1,15}(?:\.\d{1,9})?)\s{0,9}([a-z\u00b5]{0,9})/gi)];
  const written = parts.map(([part]) => part.replaceAll(/\s/g, '')).join('');
  if (written === '' || written !== text.replaceAll(/\s/g, '')) return null;
  const amounts = parts.map(
    ([, amount, unit = '']) => Number(amount) * (UNITS[unit] ?? UNITS[LONG_UNITS.exec(unit)?.[1] ?? unit] ?? Number.NaN),
  );
  const seconds = amounts.reduce((sum, one) => sum + one, 0);
  return Number.isNaN(seconds) ? null : seconds;
}

/** `sec`, `min`, `hours`, ...: the first letter is the unit. */
const LONG_UNITS = /^(s|m|h|d|w)(?:ec|econd|in|inute|r|our|ay|eek)s?$/;
