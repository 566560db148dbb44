import { defineFact, type Fact } from './fact.ts';

export interface UnitState {
  readonly loadState: string;
  readonly activeState: string;
  readonly subState: string;
  /** `enabled`, `disabled`, `masked`, ...; empty for an unknown unit. */
  readonly unitFileState: string;
  readonly fragmentPath: string | null;
  readonly dropInPaths: readonly string[];
  readonly restartPolicy: string;
  readonly mainPid: number | null;
  readonly result: string;
  readonly execMainCode: number;
  readonly execMainStatus: number;
  /** Automatic restarts since the unit was last started manually. */
  readonly restarts: number;
  /** Start of the running process, in Unix seconds of the host's clock; null: none runs, or unknown. */
  readonly startedAt: number | null;
  /** True when the files changed after systemd read them. */
  readonly needsReload: boolean;
}

const PROPERTIES =
  'LoadState,ActiveState,SubState,UnitFileState,FragmentPath,DropInPaths,Restart,MainPID,Result,ExecMainCode,ExecMainStatus,' +
  'ExecMainStartTimestamp,NRestarts,NeedDaemonReload';

/** The state of a unit; null without a running systemd. */
export function unitState(unit: string): Fact<UnitState | null> {
  return defineFact({ show: { kind: 'command', argv: ['systemctl', 'show', unit, `--property=${PROPERTIES}`] } }, ({ show }) =>
    show.exitCode === 0 ? parseUnitState(show.stdout) : null,
  );
}

/** Whether the unit must be stopped before its files are removed: also while it waits for its next start, or has failed. */
export function mustBeStopped(unit: UnitState | null): boolean {
  return unit !== null && unit.loadState !== 'not-found' && unit.activeState !== 'inactive';
}

/** Parses the `Name=value` lines of `systemctl show`; null without a state. */
export function parseUnitState(output: string): UnitState | null {
  const values = new Map<string, string>();
  for (const line of output.split('\n')) {
    const end = line.indexOf('=');
    if (end >= 0) values.set(line.slice(0, end), line.slice(end + 1));
  }
  if (!values.get('ActiveState')) return null;
  const text = (name: string): string => values.get(name) ?? '';
  return {
    loadState: text('LoadState'),
    activeState: text('ActiveState'),
    subState: text('SubState'),
    unitFileState: text('UnitFileState'),
    fragmentPath: text('FragmentPath') || null,
    dropInPaths: text('DropInPaths').split(' ').filter(Boolean),
    restartPolicy: text('Restart'),
    mainPid: Number(text('MainPID')) || null,
    result: text('Result'),
    execMainCode: Number(text('ExecMainCode') || 0),
    execMainStatus: Number(text('ExecMainStatus') || 0),
    restarts: Number(text('NRestarts') || 0),
    startedAt: text('ActiveState') === 'active' ? parseTimestamp(text('ExecMainStartTimestamp')) : null,
    needsReload: text('NeedDaemonReload') === 'yes',
  };
}

/** Parses `Fri 2026-11-20 14:16:47 UTC`, the format of systemctl for time zone UTC. */
function parseTimestamp(text: string): number | null {
  const match = /^\w{3} (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC$/.exec(text);
  return match ? Date.parse(`${match[1]}T${match[2]}Z`) / 1000 : null;
}

export function unitActive(unit: string): Fact<boolean> {
  return defineFact(
    { active: { kind: 'command', argv: ['systemctl', 'is-active', unit] } },
    ({ active }) => active.exitCode === 0 && active.stdout.trim() === 'active',
  );
}
