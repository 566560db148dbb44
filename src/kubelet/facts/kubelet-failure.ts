import type { UnitState } from '../../host/facts/unit.ts';
import { PATTERNS } from './kubelet-failure-patterns.ts';

/** The cause of a kubelet failure in the user's terms, and a hint. `fatal` causes do not resolve by waiting. */
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

const WHOLE = /^(.+)$/;

/** The cause by the messages before an exit; null: no pattern matches, and no message announces an exit. */
function explainRun({ messages, errors, exits }: ReturnType<typeof splitRuns>[number]): KubeletFailure | null {
  const reasons = exits.length > 0 ? exits : errors;
  for (const { after = [], pattern = WHOLE, needs, cause, hint, fatal = true } of PATTERNS) {
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

/** How systemd saw a process end. */
export interface ProcessEnd {
  readonly kind: 'exit' | 'signal';
  /** Exit code, or number of the signal. */
  readonly status: number;
  readonly by: 'oom-killer' | 'watchdog' | null;
}

/**
 * The messages before os.Exit(1), and those of Go for a crash: a run without them was ended from outside, or runs.
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go, pkg/kubelet/kubelet.go, pkg/kubelet/server/server.go,
 *   pkg/kubelet/certificate/transport.go, pkg/kubelet/kuberuntime/kuberuntime_manager.go, component-base/cli/run.go (1.36)
 */
const EXIT =
  /^(?:command failed|Failed to run kubelet|Failed to parse kubelet flag|Failed to create a new kubelet configuration|Failed to listen and serve|Failed to create listener for |Failed to serve\b|Failed to start cAdvisor|Kubelet failed to get node info|Failed to start ContainerManager|Failed to initialize internal modules|Failed to register CRI auth plugins|No valid client certificate is found and the server is responsive|The currently active client certificate has expired and the server is responsive|panic: |fatal error: |Error: )/;

/**
 * Errors that every start prints under usual conditions: before the first certificate, before the Node exists, and with
 * containerd 1.x. They are never the reason of an exit, and neither is "command failed" without its error.
 * @see kubernetes/kubernetes pkg/kubelet/certificate/bootstrap/bootstrap.go, pkg/kubelet/kubelet_node_status.go,
 *   pkg/kubelet/kubelet.go (1.36)
 */
const USUAL =
  /(?:unable to (?:read|load) (?:\S+ ){0,4}existing bootstrap client config|RuntimeConfig from runtime service failed|Unable to read config path: path does not exist|Failed to set rlimit on max file handles|Error getting the current node from lister|Unable to register mirror pod because node is not registered yet|Stats initialization may not have completed yet|Skipping pod synchronization|^(?:command failed|Failed to run kubelet)$)/;

/** A message of systemd about the unit. */
const NOTICE = /^(?:\S{1,256}\.service: |(?:Start|Stopp?)(?:ed|ing) |Failed to start \S{1,256}\.service)/;
/** A new process. The description of the unit, in `Started DESCRIPTION`, is free. */
const START = /^(?:Start(?:ed|ing) |\S{1,256}\.service: Scheduled restart job)/;
const STACK = /^(?:panic: |fatal error: |goroutine \d+ |SIG[A-Z]+: )/;

interface OpenRun {
  pid: string | null;
  readonly messages: string[];
  hasEnded: boolean;
  end: ProcessEnd | null;
  by: ProcessEnd['by'];
  inStack: boolean;
}

function openRun(): OpenRun {
  return { pid: null, messages: [], hasEnded: false, end: null, by: null, inStack: false };
}

/**
 * The kubelet runs in a journal, oldest first. A run begins where systemd logs a start or the process ID changes. The
 * journal may have the last message of a process after the notice of its end.
 * @returns of each process: `messages`: errors as `message: error`, newest first; `errors`: those that not every start
 *   prints; `exits`: those after which the kubelet exits; `hasEnded`: its end was logged, or the reason; `end`: null: not logged
 */
function splitRuns(journal: string) {
  const runs = [openRun()];
  for (const entry of journalEntries(journal)) {
    const current = runs.at(-1) as OpenRun;
    const own = /^[IWEF]\d{4} \S+\s+(\d+) /.exec(entry)?.[1] ?? null;
    const isBlank = current.pid === null && current.messages.length === 0 && !current.hasEnded;
    if (NOTICE.test(entry)) {
      if (!START.test(entry)) readNotice(current, entry);
      else if (!isBlank) runs.push(openRun());
      continue;
    }
    const changed = own !== null && current.pid !== null && own !== current.pid;
    if (changed) runs.push(openRun());
    readMessage(changed ? (runs.at(-1) as OpenRun) : current, entry, own);
  }
  return runs.map(({ messages: oldestFirst, hasEnded, end }) => {
    const messages = oldestFirst.reverse();
    const errors = messages.filter((text) => !USUAL.test(text));
    const exits = errors.filter((text) => EXIT.test(text));
    return { messages, errors, exits, hasEnded: hasEnded || exits.length > 0, end };
  });
}

function readNotice(run: OpenRun, notice: string): void {
  if (/killed by the OOM killer|Failed with result 'oom-kill'/.test(notice)) run.by = 'oom-killer';
  if (/: Watchdog timeout/.test(notice)) run.by = 'watchdog';
  const match = /: Main process exited, code=(exited|killed|dumped), status=(\d{1,9})/i.exec(notice);
  if (match !== null) run.end = { kind: match[1] === 'exited' ? 'exit' : 'signal', status: Number(match[2]), by: null };
  if (match !== null || /: Failed with result |: Deactivated successfully/.test(notice)) run.hasEnded = true;
  if (run.end !== null && run.by !== null) run.end = { ...run.end, by: run.by };
}

function readMessage(run: OpenRun, entry: string, pid: string | null): void {
  run.pid = pid ?? run.pid;
  const isPlain = pid === null && !entry.startsWith('{');
  const isStack = isPlain && (run.inStack || STACK.test(entry));
  if (isStack && (run.inStack || !EXIT.test(entry))) {
    run.inStack = true;
    return;
  }
  run.inStack = isStack;
  const text = errorText(entry);
  if (text !== null) run.messages.push(text);
}

/** Journal lines, with klog's form for long values (`err=<` up to `>`) joined. */
function journalEntries(journal: string): readonly string[] {
  const entries: string[] = [];
  let open = false;
  for (const line of lastLines(journal)) {
    if (!open && line.trim() !== '') entries.push(line);
    else if (open) entries.push(`${entries.pop()}\n${line}`);
    open = open ? line.trim() !== '>' : /^[IWEF]\d{4} .*=<$/.test(line);
  }
  return entries;
}

/** Limits for journals of misbehaving hosts: more lines than requested, or longer lines than a kubelet prints. */
const MAX_LINES = 2000;
const MAX_LINE = 64 * 1024;

function lastLines(journal: string): readonly string[] {
  return journal
    .split('\n')
    .slice(-MAX_LINES)
    .map((line) => line.slice(0, MAX_LINE));
}

/** `message: error` of a log entry in klog format or JSON; null for information and warnings. Other lines unchanged. */
function errorText(entry: string): string | null {
  const klog = /^([IWEF])\d{4} \S+\s+\d+ [^\]]+\] ([\s\S]*)$/.exec(entry);
  if (klog) return klog[1] === 'I' || klog[1] === 'W' ? null : klogText(klog[2] as string);
  return entry.startsWith('{') ? jsonText(entry) : entry.trim();
}

const QUOTED = /^"((?:[^"\\]|\\.)*)"/;

/**
 * The content of klog's form for long values, from `<` up to a line `>`; null for other values, or if the end
 * is cut off.
 */
function linesOf(value: string): string | null {
  const [first, ...lines] = value.split('\n');
  const end = first === '<' ? lines.findIndex((line) => line.trim() === '>') : -1;
  return end < 0 ? null : lines.slice(0, end).join('\n').trim();
}

function klogText(text: string): string {
  const message = QUOTED.exec(text)?.[1];
  if (message === undefined) return oneLine(text);
  const at = text.indexOf(' err=');
  const error = at < 0 ? '' : text.slice(at + ' err='.length);
  const quoted = QUOTED.exec(error)?.[1];
  const reported = quoted === undefined ? linesOf(error) : unquote(quoted);
  return oneLine(unquote(message) + (reported === null ? '' : `: ${reported}`));
}

function jsonText(entry: string): string | null {
  try {
    const { msg, err, v } = JSON.parse(entry) as { msg?: unknown; err?: unknown; v?: unknown };
    if (v !== undefined) return null;
    return oneLine(err === undefined ? String(msg) : `${String(msg)}: ${String(err)}`);
  } catch {
    return null;
  }
}

function unquote(text: string): string {
  return text.replace(/\\(.)/g, (_, char: string) => ({ n: '\n', t: '\t' })[char] ?? char);
}

function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

/** A kubelet may log pages in one line; the journal has the full text. */
export function shortened(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}...`;
}
