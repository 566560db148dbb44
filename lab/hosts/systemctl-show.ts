import { upTo } from '../../src/base/text/up-to.ts';

/** What `systemctl show` prints for a unit that the host does not have. */
export const NO_UNIT = ['LoadState=not-found', 'ActiveState=inactive', 'SubState=dead', 'MainPID=0', 'NeedDaemonReload=no'];

/** The properties requested from `systemctl show`. */
export function selected(properties: readonly string[], args: readonly string[]): readonly string[] {
  const desired = args.flatMap((arg) => /^--property=(.*)$/.exec(arg)?.[1]?.split(',') ?? []);
  return properties.filter((line) => desired.length === 0 || desired.includes(upTo(line, '=')));
}

/** In systemctl's format: `Fri 2026-11-20 14:12:50 UTC`. */
export function formatTimestamp(date: Date): string {
  const iso = date.toISOString();
  return `${date.toUTCString().slice(0, 3)} ${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}
