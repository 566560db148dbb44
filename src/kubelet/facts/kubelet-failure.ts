import type { UnitState } from '../../host/facts/unit.ts';
import { PATTERNS } from './kubelet-failure-patterns.ts';
import { type KubeletRun, type ProcessEnd, splitRuns } from './kubelet-journal.ts';

/**
 * The cause of a kubelet failure in the user's terms, and a hint. `fatal` causes do not resolve by waiting.
 */
export interface KubeletFailure {
  readonly cause: string;
  readonly hint: string;
  readonly fatal: boolean;
}

/**
 * Finds why a kubelet failed: by its unit, by the signal that ended its last run, or by the messages of that run. Earlier
 * runs may have had other reasons.
 * @param journal the last lines of `journalctl -u kubelet -o cat`, oldest first; null if unreadable
 * @param options.lastRunOnly the last kubelet process still runs: the reasons of earlier exits do not apply to it
 */
export function explainKubeletFailure(
  unit: UnitState | null,
  journal: string | null,
  { lastRunOnly = false }: { readonly lastRunOnly?: boolean } = {},
): KubeletFailure {
  const byUnit = unit === null ? null : explainUnit(unit);
  if (byUnit !== null) return byUnit;
  const runs = splitRuns(journal ?? '');
  // The journal of an active unit may be that of the running process alone, which has not exited.
  const past = unit?.activeState === 'active' ? runs.slice(0, -1) : runs;
  const ended = runs.findLast(({ hasEnded }) => hasEnded) ?? past.findLast(({ errors }) => errors.length > 0);
  const run = lastRunOnly ? runs.at(-1) : ended;
  const end = endOf(unit) ?? run?.end ?? null;
  if (end?.kind === 'signal' || end?.by === 'watchdog') return explainSignal(end);
  if (end?.status === EXEC) return NOT_EXECUTED;
  const found = run === undefined ? null : explainRun(run);
  if (found !== null) return found;
  const [error] = run?.errors ?? [];
  if (error !== undefined && !lastRunOnly) return { cause: error, hint: SEE_JOURNAL, fatal: false };
  const exitCode = lastRunOnly ? 0 : unit?.execMainStatus || (end?.status ?? 0);
  const exited = exitCode === 0 ? '' : `, last exit code ${exitCode}`;
  const state = unit === null ? `unit state unknown${exited}` : `unit ${unit.activeState} (${unit.subState})${exited}`;
  return { cause: error === undefined ? state : `${state}. Its last error: ${error}`, hint: SEE_JOURNAL, fatal: false };
}

const SEE_JOURNAL = 'See journalctl -u kubelet on the host';

/**
 * Finds the reason of an exit in the output of one kubelet run.
 * @returns null if the output has no reason
 */
export function explainKubeletOutput(output: string): KubeletFailure | null {
  const run = splitRuns(output).at(-1);
  return run === undefined ? null : explainRun(run);
}

/**
 * The last error of the latest run that has logged one, for messages about a wait; null: none. It need not be the
 * reason of an exit.
 */
export function lastKubeletError(journal: string): string | null {
  const run = splitRuns(journal).findLast(({ errors }) => errors.length > 0);
  return run?.exits[0] ?? run?.errors[0] ?? null;
}

/** The cause by the messages before an exit; null: no pattern matches, and no message announces an exit. */
function explainRun({ messages, errors, exits }: KubeletRun): KubeletFailure | null {
  const reasons = exits.length > 0 ? exits : errors;
  for (const { after = [], pattern, needs, cause, hint, fatal } of PATTERNS) {
    if (needs !== undefined && !reasons.some((text) => needs.test(text))) continue;
    for (const text of needs === undefined ? reasons : messages) {
      const match = pattern.exec(behind(text, after));
      if (match) return { cause: cause(match), hint, fatal };
    }
  }
  const [exit] = exits;
  if (exit === undefined) return null;
  return {
    cause: exit.replace(/^(?:command failed|Failed to run kubelet|Failed to listen and serve|panic|Error): /, ''),
    hint: SEE_JOURNAL,
    fatal: false,
  };
}

/** How the unit's process ended, by `systemctl show`; null: it runs, or is not known. ExecMainCode is of waitid(2). */
function endOf(unit: UnitState | null): ProcessEnd | null {
  if (unit === null || unit.activeState === 'active' || unit.execMainCode < 1) return null;
  const by = unit.result === 'oom-kill' ? 'oom-killer' : unit.result === 'watchdog' ? 'watchdog' : null;
  return { kind: unit.execMainCode === 1 ? 'exit' : 'signal', status: unit.execMainStatus, by };
}

const SIGNALS: Readonly<Record<number, string>> = {
  ...{ 1: 'SIGHUP', 2: 'SIGINT', 3: 'SIGQUIT', 4: 'SIGILL', 5: 'SIGTRAP', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL' },
  ...{ 11: 'SIGSEGV', 13: 'SIGPIPE', 14: 'SIGALRM', 15: 'SIGTERM', 24: 'SIGXCPU', 31: 'SIGSYS' },
};

function explainSignal({ status, by }: ProcessEnd): KubeletFailure {
  const killed = `the kubelet was killed by ${SIGNALS[status] ?? `signal ${status}`}`;
  if (by === 'watchdog')
    return {
      cause: 'the kubelet did not answer the watchdog of systemd, which ended it',
      hint: 'See journalctl -u kubelet on the host, and WatchdogSec of the unit',
      fatal: false,
    };
  const killer =
    by === 'oom-killer' ? ", by the kernel's OOM killer" : status === 9 ? ", by the kernel's OOM killer or by another process" : '';
  const hint = status === 9 ? 'See journalctl -k on the host, and the memory limits of the unit' : SEE_JOURNAL;
  return { cause: `${killed}${killer}`, hint, fatal: false };
}

/** The rest of a text after expressions searched one after the other; empty if one is missing. */
function behind(text: string, words: readonly RegExp[]): string {
  let rest = text;
  for (const word of words) {
    const found = word.exec(rest);
    if (found === null) return '';
    rest = rest.slice(found.index + found[0].length);
  }
  return rest;
}

function explainUnit(unit: UnitState): KubeletFailure | null {
  if (unit.loadState === 'masked' || unit.unitFileState === 'masked')
    return { cause: 'kubelet.service is masked', hint: 'Run systemctl unmask kubelet', fatal: true };
  if (unit.loadState === 'not-found') return { cause: 'kubelet.service does not exist', hint: 'Install the kubelet package', fatal: true };
  if (unit.loadState === 'bad-setting' || unit.loadState === 'error')
    return {
      cause: 'systemd cannot read kubelet.service or one of its drop-ins',
      hint: 'See systemctl status kubelet on the host',
      fatal: true,
    };
  if (unit.execMainStatus === EXEC) return NOT_EXECUTED;
  return null;
}

/** Exit code of systemd's own process (systemd.exec(5)). */
const EXEC = 203;
const NOT_EXECUTED: KubeletFailure = {
  cause: 'systemd cannot execute the kubelet binary named in ExecStart (203/EXEC)',
  hint: 'Install the kubelet at that path, or correct ExecStart',
  fatal: true,
};
