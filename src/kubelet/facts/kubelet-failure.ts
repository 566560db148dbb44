import type { UnitState } from '../../host/facts/unit.ts';
import { PATTERNS } from './kubelet-failure-patterns.ts';
import { splitRuns } from './kubelet-journal.ts';

/**
 * The cause of a kubelet failure in the user's terms, and a hint. `fatal` causes do not resolve by waiting.
 */
export interface KubeletFailure {
  readonly cause: string;
  readonly hint: string;
  readonly fatal: boolean;
}

/**
 * The reason of an exit that no pattern matches: in the first group, or in the second if the error alone is
 * not specific.
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go, pkg/kubelet/kubelet.go, pkg/kubelet/server/server.go
 *   (1.36): log messages before os.Exit(1)
 */
const DEPRECATION_MESSAGES =
  /^(?:(?:command failed|Failed to run kubelet|Failed to listen and serve|panic): (.+)|((?:Failed to start cAdvisor|Kubelet failed to get node info|Failed to initialize internal modules|Failed to create listener for \S{1,64} endpoint|Failed to serve): .+))$/;

/**
 * Finds the cause in a unit's state and its journal: in the kubelet's last run, otherwise in the one before,
 * and so on.
 * @param journal the last lines of `journalctl -u kubelet -o cat`, oldest first; null if unreadable
 * @param options.lastRunOnly the last kubelet process still runs: the reasons of earlier exits do not apply
 *   to it
 */
export function explainKubeletFailure(
  unit: UnitState | null,
  journal: string | null,
  options: { readonly lastRunOnly?: boolean } = {},
): KubeletFailure {
  const byUnit = unit === null ? null : explainUnit(unit);
  if (byUnit !== null) return byUnit;
  const all = splitRuns(journal ?? '').reverse();
  const reported = explainRuns(options.lastRunOnly === true ? all.slice(0, 1) : all);
  if (reported !== null) return reported;
  const state =
    unit === null
      ? 'unit state unknown'
      : `unit ${unit.activeState} (${unit.subState})${unit.execMainStatus === 0 ? '' : `, last exit code ${unit.execMainStatus}`}`;
  return { cause: state, hint: SEE_JOURNAL, fatal: false };
}

const SEE_JOURNAL = 'See journalctl -u kubelet on the host';

/**
 * Finds the cause in the output of one kubelet run.
 * @returns null if the output has no reason
 */
export function explainKubeletOutput(output: string): KubeletFailure | null {
  return explainRuns(splitRuns(output).reverse());
}

/** @param runs newest first */
function explainRuns(runs: readonly (readonly string[])[]): KubeletFailure | null {
  for (const run of runs) {
    const found = findCause(run);
    if (found !== null) return found;
  }
  const last = runs.flat().find((text) => DEPRECATION_MESSAGES.test(text));
  if (last === undefined) return null;
  const [, error, whole] = DEPRECATION_MESSAGES.exec(last) ?? [];
  return { cause: (error ?? whole) as string, hint: SEE_JOURNAL, fatal: false };
}

/** @param run messages of one run, newest first */
function findCause(run: readonly string[]): KubeletFailure | null {
  for (const { after = [], pattern, needs, cause, hint, fatal } of PATTERNS) {
    if (needs !== undefined && !run.some((text) => needs.test(text))) continue;
    for (const text of run) {
      const match = pattern.exec(behind(text, after));
      if (match) return { cause: cause(match), hint, fatal };
    }
  }
  return null;
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
  if (unit.execMainStatus === 203)
    return {
      cause: 'systemd cannot execute the kubelet binary named in ExecStart (203/EXEC)',
      hint: 'Install the kubelet at that path, or correct ExecStart',
      fatal: true,
    };
  return null;
}
