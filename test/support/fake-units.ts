import { oldestFirst } from '../../src/host/access/journal.ts';
import type { CommandFact } from '../../src/host/facts/query.ts';
import type { UnitState } from '../../src/host/facts/unit.ts';
import { UNIT_DIRECTORIES } from '../../src/host/systemd/kubelet-unit-paths.ts';

/** A unit of a fake host, with the effect of its start. */
export interface FakeUnit {
  /** The properties that systemd would show; tests may change them at any time. */
  state: UnitState;
  /** Lines of its journal. */
  journal: string;
  /** Number of starts and restarts. */
  starts: number;
  /** The result of a start. Default: it runs. */
  onStart: (unit: FakeUnit) => void;
}

const LOADED: UnitState = {
  loadState: 'loaded',
  activeState: 'inactive',
  subState: 'dead',
  unitFileState: 'disabled',
  fragmentPath: null,
  dropInPaths: [],
  restartPolicy: 'always',
  mainPid: null,
  result: 'success',
  execMainCode: 0,
  execMainStatus: 0,
  restarts: 0,
  startedAt: null,
  needsReload: false,
};

const FIRST_PID = 1000;

/** A unit that is loaded and does not run; starting it makes it run. */
export function fakeUnit(change: Partial<UnitState> = {}): FakeUnit {
  const isActive = change.activeState === 'active';
  return {
    state: { ...LOADED, startedAt: isActive ? 0 : null, mainPid: isActive ? FIRST_PID : null, ...change },
    journal: '',
    starts: 0,
    onStart: runs,
  };
}

/** Marks the unit as running. */
export function runs(unit: FakeUnit): void {
  const mainPid = FIRST_PID + unit.starts + unit.state.restarts;
  unit.state = { ...unit.state, activeState: 'active', subState: 'running', execMainCode: 0, execMainStatus: 0, mainPid };
}

/** Simulates a crash: one more restart, and the next one is scheduled. */
export function crashes(unit: FakeUnit, journalLine: string, exitCode = 1): void {
  const { restarts } = unit.state;
  unit.state = {
    ...unit.state,
    activeState: 'activating',
    subState: 'auto-restart',
    execMainCode: 1,
    execMainStatus: exitCode,
    restarts: restarts + 1,
    mainPid: null,
  };
  unit.journal += `Started kubelet.service - kubelet: The Kubernetes Node Agent.\n${journalLine}\nkubelet.service: Failed with result 'exit-code'.\n`;
}

/** A systemd with these units, over the files of a host. */
export interface FakeSystemd {
  readonly units: Map<string, FakeUnit>;
  /** The answer to a systemd command, or null for any other command. */
  run(argv: readonly string[]): CommandFact | null;
  /** A file changed: units may need a reload. */
  fileChanged(path: string): void;
}

/** Units that the program may write. */
const OWN_UNITS = ['kubelet', 'kubeletadm-agent', 'kubeletadm-controller'];

const OK: CommandFact = { exitCode: 0, stdout: '', stderr: '' };

/**
 * @param exists whether a path exists: an undefined unit is loaded from its file on daemon-reload
 * @param now Unix seconds of the host's clock
 */
export function fakeSystemd(units: Map<string, FakeUnit>, exists: (path: string) => boolean, now: () => number): FakeSystemd {
  const unitPath = (name: string): string | undefined => UNIT_DIRECTORIES.map((directory) => `${directory}/${name}.service`).find(exists);
  const verbs: Readonly<Record<string, (name: string) => CommandFact>> = {
    show: (name) => ({ ...OK, stdout: showUnit(units.get(name)?.state ?? { ...LOADED, loadState: 'not-found', unitFileState: '' }) }),
    'is-active': (name) => {
      const state = units.get(name)?.state.activeState ?? 'inactive';
      return { ...OK, exitCode: state === 'active' ? 0 : 3, stdout: `${state}\n` };
    },
    enable: (name) => change(name, 'enable', (unit) => ({ ...unit.state, unitFileState: 'enabled' })),
    disable: (name) => change(name, 'disable', (unit) => ({ ...unit.state, unitFileState: 'disabled' })),
    stop: (name) => change(name, 'stop', (unit) => ({ ...unit.state, activeState: 'inactive', subState: 'dead' })),
    start: (name) => start(name, 'start'),
    restart: (name) => start(name, 'restart'),
  };
  const failed = (verb: string, name: string, why: string): CommandFact => ({
    exitCode: 5,
    stdout: '',
    stderr: `Failed to ${verb} ${name}.service: Unit ${name}.service ${why}.\n`,
  });
  function change(name: string, verb: string, next: (unit: FakeUnit) => UnitState): CommandFact {
    const unit = units.get(name);
    if (unit === undefined || unit.state.loadState === 'not-found') return failed(verb, name, 'not found');
    unit.state = next(unit);
    return OK;
  }
  function start(name: string, verb: string): CommandFact {
    const unit = units.get(name);
    if (unit === undefined || unit.state.loadState === 'not-found') return failed(verb, name, 'not found');
    if (unit.state.loadState === 'masked') return failed(verb, name, 'is masked');
    if (unit.state.loadState !== 'loaded') return failed(verb, name, 'has a bad unit file setting');
    unit.starts++;
    unit.state = { ...unit.state, startedAt: now() };
    unit.onStart(unit);
    return OK;
  }
  return {
    units,
    run: (argv) => {
      const [program, verb = '', ...rest] = argv;
      if (program === 'journalctl') {
        const name = argv.find((word) => word.startsWith('--unit='))?.slice('--unit='.length) ?? '';
        const journal = units.get(name)?.journal ?? '';
        return { ...OK, stdout: argv.includes('--reverse') ? oldestFirst(journal) : journal };
      }
      if (program === 'sh' && rest[0]?.includes('--property=MainPID')) return showProcess(units.get('kubelet'));
      if (program !== 'systemctl') return null;
      if (verb === 'daemon-reload') {
        for (const name of OWN_UNITS) {
          const isExisting = unitPath(name) !== undefined;
          if (!units.has(name) && isExisting) units.set(name, fakeUnit());
          if (name !== 'kubelet' && !isExisting) units.delete(name);
        }
        for (const unit of units.values()) unit.state = { ...unit.state, needsReload: false };
        return OK;
      }
      const name = rest.find((word) => !word.startsWith('-'));
      return name === undefined ? null : (verbs[verb]?.(name.replace(/\.service$/, '')) ?? null);
    },
    fileChanged: (path) => {
      for (const [name, unit] of units) {
        if (UNIT_DIRECTORIES.some((directory) => path.startsWith(`${directory}/${name}.service`)))
          unit.state = { ...unit.state, needsReload: true };
      }
    },
  };
}

/** The time as systemctl prints it in UTC. */
function systemdTime(seconds: number): string {
  const date = new Date(seconds * 1000);
  const [day, time] = date.toISOString().split(/[T.]/);
  return `${['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'][date.getUTCDay()]} ${day} ${time} UTC`;
}

/** The process of a unit for `kubeletCommandLine`: a process that no test has started runs for an hour. */
function showProcess(unit: FakeUnit | undefined): CommandFact {
  const { mainPid = null } = unit?.state ?? {};
  if (mainPid === null) return { ...OK, exitCode: 3 };
  const hasOldProcess = mainPid === FIRST_PID;
  return { ...OK, stdout: `${mainPid} ${hasOldProcess ? '0 360000' : ' '}\n/usr/bin/kubelet\0` };
}

function showUnit(state: UnitState): string {
  const values: Readonly<Record<string, string | number>> = {
    LoadState: state.loadState,
    ActiveState: state.activeState,
    SubState: state.subState,
    UnitFileState: state.unitFileState,
    FragmentPath: state.fragmentPath ?? '',
    DropInPaths: state.dropInPaths.join(' '),
    Restart: state.restartPolicy,
    MainPID: state.mainPid ?? 0,
    Result: state.result,
    ExecMainCode: state.execMainCode,
    ExecMainStatus: state.execMainStatus,
    ExecMainStartTimestamp: state.startedAt === null ? '' : systemdTime(state.startedAt),
    NRestarts: state.restarts,
    NeedDaemonReload: state.needsReload ? 'yes' : 'no',
  };
  return Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}
