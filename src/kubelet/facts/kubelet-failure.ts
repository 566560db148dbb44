import { upTo } from '../../base/text/up-to.ts';
import type { UnitState } from '../../host/facts/unit.ts';

/**
 * The cause of a kubelet failure in the user's terms, and a hint. `fatal` causes do not resolve by waiting.
 */
export interface KubeletFailure {
  readonly cause: string;
  readonly hint: string;
  readonly fatal: boolean;
}

interface Pattern {
  /**
   * Expressions searched one after the other; the pattern applies to the rest. None contains repetitions, so
   * that a long line takes linear time.
   */
  readonly after?: readonly RegExp[];
  readonly pattern: RegExp;
  /** Required in the same run: the first message alone is not the reason of an exit. */
  readonly needs?: RegExp;
  readonly cause: (match: RegExpExecArray) => string;
  readonly hint: string;
  readonly fatal: boolean;
}

/** Specific patterns before general ones: a failing run often logs several errors. */
const PATTERNS: readonly Pattern[] = [
  {
    after: [/part of the existing bootstrap client certificate in /],
    pattern: /^(\S+) is expired: (\S+)/,
    needs: /unable to load bootstrap kubeconfig/,
    cause: (match) => `the kubelet's client certificate in ${match[1]} expired on ${match[2]}`,
    hint: 'Renew the certificate with kubeletadm certs renew-kubelet, or join the host again with a new token',
    fatal: true,
  },
  {
    after: [/unable to read existing bootstrap client config from /],
    pattern: /^(\S+): (?:invalid configuration: )?(.+)$/,
    needs: /unable to load bootstrap kubeconfig/,
    cause: (match) => `the kubelet cannot use ${match[1]}: ${match[2]}`,
    hint: 'Join the host again',
    fatal: true,
  },
  {
    after: [/unable to load bootstrap kubeconfig: /],
    pattern: /^.+$/,
    cause: ([reported]) => `the kubelet has no credentials: ${upTo(reported, JSON_ERROR)}`,
    hint: 'Join the host, or provide /etc/kubernetes/kubelet.conf',
    fatal: true,
  },
  {
    after: [/(?:invalid kubeconfig|unable to load kubeconfig): (?:invalid configuration: )?/],
    pattern: /^.+$/,
    cause: ([reported]) => `the kubelet has no usable kubeconfig: ${upTo(reported, JSON_ERROR)}`,
    hint: 'Join the host again',
    fatal: true,
  },
  {
    pattern: /no client provided, cannot use webhook/,
    cause: () => 'the kubelet has no kubeconfig, and its authorization mode Webhook needs one',
    hint: 'Join the host, or provide /etc/kubernetes/kubelet.conf',
    fatal: true,
  },
  {
    pattern: /failed to validate kubelet configuration, error: kubelet is configured to not run on a host using cgroup v1/,
    cause: () => 'the host uses cgroup v1, which this kubelet refuses',
    hint: 'Boot the host with cgroup v2, or set failCgroupV1: false',
    fatal: true,
  },
  {
    after: [/failed to load kubelet config file/i, /failed to decode: /i],
    pattern: /^.+$/,
    cause: ([reported]) => `the kubelet cannot read its configuration: ${reported.replace(/ in scheme "[^"]*"$/, '')}`,
    hint: 'Fix the field in the configuration',
    fatal: true,
  },
  {
    after: [/failed to load kubelet config file/i, /open (?=\/)/i],
    pattern: /^(\S+): no such file/i,
    cause: (match) => `${match[1]} does not exist`,
    hint: 'Restore the file',
    fatal: true,
  },
  {
    after: [/kubelet config file "?/],
    pattern: /^([^"\s]+)"? was empty/,
    cause: (match) => `${match[1]} is empty`,
    hint: 'Restore the content of the file',
    fatal: true,
  },
  {
    after: [/cannot set feature gate /],
    pattern: /^(\S+) to (\S+), feature is locked to (\S+)/,
    cause: (match) => `feature gate ${match[1]} is locked to ${match[3]}`,
    hint: 'Remove the gate from featureGates',
    fatal: true,
  },
  {
    after: [/unrecognized feature gate: /],
    pattern: /^(\S+)/,
    cause: (match) => `this kubelet does not know the feature gate ${match[1]}`,
    hint: 'Remove the gate from featureGates',
    fatal: true,
  },
  {
    pattern: /the (\w{1,100}) feature gate must be enabled in order to use the (--\S{1,100}) flag/,
    cause: (match) => `the kubelet is started with ${match[2]}, but the feature gate ${match[1]} of this flag is off`,
    hint: 'Enable the gate with the flag --feature-gates and remove the gate from configuration files. Or remove the flag that needs the gate',
    fatal: true,
  },
  {
    after: [/unknown (?:shorthand )?flag: /],
    pattern: /^(.+)$/,
    cause: (match) => `this kubelet does not know the flag ${match[1]}`,
    hint: 'Remove the flag from kubeletExtraArgs or KUBELET_EXTRA_ARGS',
    fatal: true,
  },
  {
    after: [/invalid argument /],
    pattern: /^("(?:[^"\\]|\\.)*") for ("[^"]*") flag: (.+)$/,
    cause: (match) => `flag ${match[2]} has the invalid value ${match[1]}: ${match[3]}`,
    hint: 'Change the value in kubeletExtraArgs or KUBELET_EXTRA_ARGS',
    fatal: true,
  },
  {
    after: [/(?=\[?invalid configuration: )/],
    pattern: /^.+$/,
    cause: ([reported]) => `the kubelet refuses its configuration: ${listOf(upTo(reported, ', path: &TypeMeta'))}`,
    hint: 'Change the fields named in the message',
    fatal: true,
  },
  {
    after: [/kubelet cgroup driver: /],
    pattern: /^"?(\w+)"? is different from (\w+) cgroup driver: "?(\w+)"?/,
    cause: (match) => `cgroup driver mismatch: the kubelet uses ${match[1]}, ${match[2]} uses ${match[3]}`,
    hint: 'Set cgroupDriver to the driver of the runtime',
    fatal: true,
  },
  {
    pattern: /running with swap on is not supported/i,
    cause: () => 'swap is on',
    hint: 'Disable swap (swapoff -a, /etc/fstab), or set failSwapOn: false',
    fatal: true,
  },
  {
    after: [/Cipher suite /],
    pattern: /^(\S+) not supported/,
    cause: (match) => `tlsCipherSuites: ${match[1]} is not a cipher suite of this kubelet`,
    hint: 'Remove or replace that entry of tlsCipherSuites',
    fatal: true,
  },
  {
    after: [/unknown tls version "?/],
    pattern: /^([^"\s]+)/,
    cause: (match) => `tlsMinVersion: ${match[1]} is not a TLS version of this kubelet`,
    hint: 'Set tlsMinVersion to a TLS version of this kubelet',
    fatal: true,
  },
  {
    after: [/failed to run Kubelet: /],
    pattern: /^((?:--\S+ value )?failed to parse.*|quantities must match.*)$/,
    cause: (match) => `the kubelet cannot read a quantity of its configuration: ${match[1]}`,
    hint: 'Fix the quantity in systemReserved, kubeReserved or the eviction thresholds',
    fatal: true,
  },
  {
    after: [/initialize logging: /],
    pattern: /^(.+)$/,
    cause: (match) => `the kubelet refuses its configuration: ${match[1]}`,
    hint: 'Fix the fields of logging',
    fatal: true,
  },
  {
    after: [/listen tcp /],
    pattern: /^\S*?:(\d+): bind: address already in use/,
    cause: (match) => `port ${match[1]} is in use by another process`,
    hint: 'Find the process with ss -ltnp and stop it',
    fatal: true,
  },
  {
    after: [/validate CRI v1 (?:runtime|image) API for endpoint "/],
    pattern: /^([^"]+)".*(?:no such file|connection refused)/,
    cause: (match) => `no container runtime responds at ${match[1]}`,
    hint: 'Start the container runtime, or set criSocket',
    fatal: false,
  },
  {
    pattern: /unknown service runtime\.v1\.RuntimeService/,
    cause: () => 'the CRI plugin of the container runtime is disabled, or the runtime is too old',
    hint: 'Check disabled_plugins in /etc/containerd/config.toml',
    fatal: false,
  },
  {
    after: [/(?:failed to run Kubelet|Failed to listen and serve): open /],
    pattern: /^(\S+): no such file or directory/,
    cause: (match) => `${match[1]} does not exist`,
    hint: 'Create the file, or change the field that names it',
    fatal: true,
  },
  {
    after: [/Failed to start ContainerManager: /],
    pattern: /^invalid Node Allocatable configuration\. Resource "([^"]+)"/,
    cause: (match) => `kubeReserved and systemReserved reserve more ${match[1]} than the host has`,
    hint: 'Reserve less in kubeReserved and systemReserved',
    fatal: true,
  },
  {
    after: [/Failed to start ContainerManager: /],
    pattern: /^(.+)$/,
    cause: (match) => `the kubelet cannot set up its cgroups: ${match[1]}`,
    hint: 'Check cgroupDriver and the cgroups of the host',
    fatal: false,
  },
  {
    pattern: /^Failed to start cAdvisor: .*too many open files/,
    cause: () => 'the host has no inotify instances left',
    hint: 'Raise fs.inotify.max_user_instances',
    fatal: false,
  },
  { pattern: /no space left on device/i, cause: () => 'the disk is full', hint: 'Free disk space', fatal: false },
];

const JSON_ERROR = '; json parse error: ';

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

/**
 * The kubelet runs in a journal, oldest first, each with its error messages, newest first. A run begins where
 * systemd logs a start or the process ID changes.
 */
function splitRuns(journal: string): (readonly string[])[] {
  const runs: string[][] = [[]];
  let pid: string | null = null;
  for (const entry of journalEntries(journal)) {
    const own = /^[IWEF]\d{4} \S+\s+(\d+) /.exec(entry)?.[1] ?? null;
    const started = /^Started .*kubelet/i.test(entry);
    if (started || (own !== null && pid !== null && own !== pid)) runs.push([]);
    pid = started ? null : (own ?? pid);
    const text = errorText(entry);
    if (text !== null) runs.at(-1)?.push(text);
  }
  return runs.map((run) => run.reverse());
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

/**
 * Limits for journals of misbehaving hosts: more lines than requested, or longer lines than a kubelet prints.
 */
const MAX_LINES = 2000;
const MAX_LINE = 64 * 1024;

function lastLines(journal: string): readonly string[] {
  return journal
    .split('\n')
    .slice(-MAX_LINES)
    .map((line) => line.slice(0, MAX_LINE));
}

/**
 * `message: error` of a log entry in klog format or JSON; null for information and warnings. Other lines
 * unchanged.
 */
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
    return entry;
  }
}

function unquote(text: string): string {
  return text.replace(/\\(.)/g, (_, char: string) => ({ n: '\n', t: '\t' })[char] ?? char);
}

function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

/** `[invalid configuration: a, invalid configuration: b]` as `a; b`. */
function listOf(text: string): string {
  return text
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/^invalid configuration: /, '')
    .replace(/, (?:invalid configuration: |(?=kubelet is configured to not run on a host using cgroup v1))/g, '; ');
}
