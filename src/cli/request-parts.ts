import { isAbsolute, resolve } from 'node:path';
import type { Arg } from '../base/arg.ts';
import { AppError, usageError } from '../base/errors.ts';
import { goDurationMs, isTimeLimit, parseGoDuration } from '../base/text/go-duration.ts';
import { trimTrailing } from '../base/text/trim-trailing.ts';
import type { ConnectionRequest, HostsRequest, PasswordSource } from '../fleet/use-cases/host-access.ts';
import type { FleetRequest } from '../fleet/use-cases/load-fleet.ts';
import type { NodeChoice } from '../fleet/use-cases/named-hosts.ts';
import { DEFAULT_ALLOWED, IMPACTS, type Impact } from '../host/plan/impact.ts';
import type { RunSettings } from '../host/run-settings.ts';
import { type LabelSelector, LabelSelectorError, parseLabelSelector } from '../kube/label-selector.ts';
import { isNodeReference, parseNodeName } from '../kube/node-name.ts';
import { unknownCheck } from '../kubeadm/config/check-names.ts';
import type { Flags } from '../kubeadm/config/flag-values.ts';
import type { FieldsRequest, NodeRequest } from '../kubeadm/use-cases/node-options.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import type { FieldSetting } from '../kubelet/layers/setting.ts';
import { splitSetting } from '../kubelet/layers/setting-form.ts';
import type { CommandOptions } from './command.ts';
import { flagChoice, flagList, flagNumber, flagText } from './option-values.ts';
import { type JsonPathFormat, readJsonPathFormat } from './output/jsonpath-format.ts';
import type { OutputRequest, ReadFormat } from './output/show-document.ts';
import type { PlanRequest } from './output/show-plan.ts';
import type { TableRequest } from './show-table.ts';

/**
 * A duration in milliseconds; undefined when it was not given.
 * @param flag as the user writes it
 * @param limits.least the shortest that is accepted. Default: 0
 * @throws AppError USAGE (exit code 2)
 */
export function flagDuration(
  options: CommandOptions,
  name: string,
  { flag = `--${name}`, example, least = 0 }: { readonly flag?: string; readonly example: string; readonly least?: 0 | 1 },
): number | undefined {
  const text = flagText(options, name);
  if (text === undefined) return undefined;
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === null || nanoseconds < BigInt(least)) throw usageError(`${flag} ${text} is not a valid duration`, example);
  return Number(nanoseconds / 1_000_000n);
}

/** Log verbosity. */
export function verbosityOf(options: CommandOptions): number {
  return flagNumber(options, 'v', 0);
}

/** `-o`, `-v` and `--diff`, which `-v` and `--show-origin` imply. */
export function outputRequest(options: CommandOptions): OutputRequest {
  const verbosity = verbosityOf(options);
  const showsDiff = options.diff === true || options.showOrigin === true || verbosity > 0;
  return { format: flagChoice(options, 'output', ['text', 'json', 'yaml']), verbosity, showsDiff };
}

/**
 * `-o` of a command that only reads.
 * @throws AppError USAGE (exit code 2) for an invalid template
 */
export function readFormat(options: CommandOptions): ReadFormat {
  return jsonPathOf(options) ?? flagChoice(options, 'output', ['text', 'json', 'yaml']);
}

/**
 * `-o` and `--no-headers` of a command that prints a table.
 * @throws AppError USAGE (exit code 2) for an invalid template
 */
export function tableRequest(options: CommandOptions): TableRequest {
  const format = jsonPathOf(options) ?? flagChoice(options, 'output', ['text', 'wide', 'name', 'json', 'yaml']);
  return { format, headers: options.headers !== false };
}

function jsonPathOf(options: CommandOptions): JsonPathFormat | undefined {
  return readJsonPathFormat(flagText(options, 'output') ?? '', options.allowMissingTemplateKeys === false ? 'refused' : 'ignored');
}

/** `-o`, `--exit-code` and `--show-origin`. */
export function planRequest(options: CommandOptions): PlanRequest {
  return {
    ...outputRequest(options),
    failsIfChanged: options.exitCode === true,
    showOrigin: options.showOrigin === true,
  };
}

/**
 * `--dry-run`, `--skip-phases`, `--allow-pod-loss`, `--ignore-preflight-errors`, and a phase of the command line.
 * @param onlyPhase undefined: all phases
 */
export function runRequest(options: CommandOptions, onlyPhase?: string): RunSettings {
  return {
    dryRun: options.dryRun === true,
    skipPhases: flagList(options, 'skipPhases'),
    onlyPhase,
    ...drainRequest(options),
    podLoss: options.allowPodLoss === true ? 'warn' : 'refuse',
    ignorePreflightErrors: flagList(options, 'ignorePreflightErrors'),
  };
}

/** `--no-drain`, `--force-drain`, `--drain-timeout` and `--settle` of a command that has them. */
export function drainRequest(options: CommandOptions): Pick<RunSettings, 'drain'> {
  if (options.drain === undefined) return {};
  const example = 'Pass for example --drain-timeout 10m';
  const timeoutMs = flagDuration(options, 'drainTimeout', { flag: '--drain-timeout', example, least: 1 }) ?? 0;
  return {
    drain: {
      isAllowed: options.drain !== false,
      isForced: options.forceDrain === true,
      timeoutMs,
      settleMs: flagDuration(options, 'settle', { example: 'Pass for example --settle 5m; 0s: do not wait' }) ?? 0,
      acceptsLoss: options.allowPodLoss === true,
    },
  };
}

/**
 * `runRequest` of a command for fleets. Commands of kubeadm accept unknown names of checks with a warning.
 * @throws AppError CONFIG_UNKNOWN_CHECK (exit code 2) for an unknown check of `--ignore-preflight-errors`
 */
export function fleetRunSettings(options: CommandOptions): RunSettings {
  const run = runRequest(options);
  for (const name of run.ignorePreflightErrors) {
    const unknown = unknownCheck(name);
    if (unknown === null) continue;
    const message = `--ignore-preflight-errors: ${unknown.message}`;
    throw new AppError({ ...unknown, code: 'CONFIG_UNKNOWN_CHECK', message }, { exitCode: 2 });
  }
  return run;
}

/** `runRequest` of a command that changes kubelets: with `--allow`. */
export function kubeletRunRequest(options: CommandOptions, onlyPhase?: string): RunSettings {
  return { ...runRequest(options, onlyPhase), allow: allowedImpact(options) ?? DEFAULT_ALLOWED };
}

/** `--kubeconfig` and `--context`. */
export function kubeconfigRequest(options: CommandOptions): KubeconfigRequest {
  return { kubeconfig: flagText(options, 'kubeconfig'), context: flagText(options, 'context') };
}

/**
 * SSH connection options.
 * @throws AppError USAGE (exit code 2)
 */
export function connectionRequest(options: CommandOptions): ConnectionRequest {
  return {
    configFile: flagText(options, 'sshConfig'),
    identityFiles: flagList(options, 'sshIdentity'),
    knownHostsFile: flagText(options, 'sshKnownHosts'),
    acceptNewHostKeys: options.sshAcceptNew === true,
    password: passwordSource(options, { asks: 'askPass', reads: 'sshPasswordStdin' }),
    sudoPassword: passwordSource(options, { asks: 'askBecomePass', reads: 'sudoPasswordStdin' }),
    connectTimeoutMs: flagNumber(options, 'connectTimeout', 10) * 1000,
    transport: flagChoice(options, 'sshTransport', ['builtin', 'openssh']),
    become: flagChoice(options, 'become', ['auto', 'sudo', 'none']),
    commandTimeoutMs: commandTimeoutMs(options),
  };
}

const PASSWORD_FLAGS = {
  askPass: '--ask-pass',
  askBecomePass: '--ask-become-pass',
  sshPasswordStdin: '--ssh-password-stdin',
  sudoPasswordStdin: '--sudo-password-stdin',
} as const;

/** An option that asks on the terminal cannot be combined with one that reads standard input: it is that terminal. */
function passwordSource(
  options: CommandOptions,
  { asks, reads }: { readonly asks: 'askPass' | 'askBecomePass'; readonly reads: 'sshPasswordStdin' | 'sudoPasswordStdin' },
): PasswordSource {
  if (options[asks] !== true) return options[reads] === true ? 'stdin' : 'environment';
  const reading = (['sshPasswordStdin', 'sudoPasswordStdin'] as const).find((name) => options[name] === true);
  if (reading !== undefined)
    throw usageError(`${PASSWORD_FLAGS[asks]} and ${PASSWORD_FLAGS[reading]} cannot be combined`, 'Omit one of the two');
  return 'terminal';
}

function commandTimeoutMs(options: CommandOptions): number | undefined {
  const text = flagText(options, 'commandTimeout');
  if (text === undefined) return undefined;
  if (!isTimeLimit(text))
    throw usageError(`--command-timeout ${text} is not a duration from 1s to 24h`, 'Use a duration such as 90s or 5m');
  return goDurationMs(text);
}

/**
 * `--host`, `--rootfs` and the SSH connection options.
 * @throws AppError USAGE (exit code 2)
 */
export function hostsRequest(options: CommandOptions): HostsRequest {
  const addresses = flagList(options, 'host').map(hostAddress);
  requireDifferent(addresses, '--host ');
  return { addresses, rootDir: flagText(options, 'rootfs'), file: fleetNames(options), connection: connectionRequest(options) };
}

/**
 * A directory of the hosts that is given on the command line. For the local host it may be relative to the
 * working directory.
 * @param option as commander names it, e.g. `certDir`
 * @param flag as the user writes it
 */
export function hostDirectory(options: CommandOptions, option: string, flag: string): string | undefined {
  const text = flagText(options, option);
  if (text === undefined || isAbsolute(text)) return text && (trimTrailing(text, '/') || '/');
  if (flagList(options, 'host').length === 0) return resolve(text);
  throw usageError(`${flag} ${text} is not an absolute path, which --host requires`);
}

/** The fleet file that names of hosts and Nodes refer to; undefined: `fleet.yaml`, if it exists. */
export function fleetNames(options: CommandOptions): string | undefined {
  return flagText(options, 'fleet');
}

/** A host from an argument: `[user@]ADDRESS[:port]`, the same behind `host/`, or `node/NAME`. */
export function hostAddress(argument: string): string {
  return isNodeReference(argument) ? `node/${parseNodeName(argument)}` : argument.replace(/^hosts?\//, '');
}

/** A Node from an argument: a name of the fleet file or of a Node, the same behind `host/`, or `node/NAME`. */
export function nodeArgument(argument: string): string {
  const name = hostAddress(argument);
  return isNodeReference(name) ? name : parseNodeName(name);
}

/**
 * Rejects a duplicate address.
 * @param prefix printed before the address
 * @throws AppError USAGE (exit code 2)
 */
export function requireDifferent(addresses: readonly string[], prefix = ''): void {
  const twice = addresses.find((address, at) => addresses.indexOf(address) !== at);
  if (twice !== undefined) throw usageError(`${prefix}${twice} is given twice`, 'Pass each host once');
}

/** `--backend`; undefined: detected. */
export function backendOf(options: CommandOptions): 'native' | 'agent' | undefined {
  return options.backend === undefined ? undefined : flagChoice(options, 'backend', ['native', 'agent']);
}

/**
 * `-f`, `--limit`, `--group` and `--selector`.
 * @throws AppError USAGE (exit code 2)
 */
export function fleetRequest(options: CommandOptions): FleetRequest {
  const selection = { limit: flagList(options, 'limit'), groups: flagList(options, 'group'), selector: selectorOf(options) };
  return { file: flagText(options, 'file'), selection };
}

/**
 * `--selector`.
 * @throws AppError USAGE (exit code 2) for an invalid or empty selector: an empty one would select everything
 */
export function selectorOf(options: CommandOptions): LabelSelector | undefined {
  const text = flagText(options, 'selector');
  if (text === undefined) return undefined;
  if (text.trim() === '') throw usageError('--selector is empty', 'For example: --selector pool=edge');
  return parseSelector(text, '--selector');
}

/**
 * The label selector of an option.
 * @throws AppError USAGE (exit code 2)
 */
export function parseSelector(text: string, flag: string): LabelSelector {
  try {
    return parseLabelSelector(text);
  } catch (error) {
    if (!(error instanceof LabelSelectorError)) throw error;
    throw usageError(`${flag} ${text}: ${error.message}`, `For example: ${flag} 'pool=edge,zone in (a,b),!gpu'`);
  }
}

/**
 * Nodes by name or `node/NAME`, by label, or by the hosts of a fleet file. Undefined: none of them is given.
 * @throws AppError USAGE (exit code 2) for an invalid name or selector, and for a combination
 */
export function nodeChoice(args: readonly string[], options: CommandOptions): NodeChoice | undefined {
  const [groups, limit, fleetFile] = [flagList(options, 'group'), flagList(options, 'limit'), flagText(options, 'fleet')];
  const names = [...new Set(args.map(nodeArgument))];
  const selector = selectorOf(options);
  const byFleet = groups.length + limit.length > 0;
  const routes = [names.length > 0, selector !== undefined, byFleet].filter(Boolean).length;
  if (routes > 1)
    throw usageError('the nodes are selected in more than one way', 'Use only node names, or only --selector, or only --group and --limit');
  const connection = connectionRequest(options);
  if (names.length > 0) return { kind: 'names', names, file: fleetFile, connection };
  if (selector !== undefined) return { kind: 'selector', selector };
  return byFleet ? { kind: 'fleet', file: fleetFile, selection: { groups, limit }, connection } : undefined;
}

/** The name of a Node in an option; undefined when it was not given. */
export function flagNode(options: CommandOptions, name: string): string | undefined {
  const text = flagText(options, name);
  return text === undefined ? undefined : parseNodeName(text);
}

/** The options by their kubeadm names: `podNetworkCidr` becomes `pod-network-cidr`. */
export function kubeadmFlags(options: CommandOptions): Flags {
  const entries = Object.entries(options).flatMap(([name, value]) => {
    const kept = typeof value === 'string' || typeof value === 'boolean' || Array.isArray(value);
    return kept ? [[name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`), value]] : [];
  });
  return Object.fromEntries(entries) as Flags;
}

/** `--allow`; undefined: not given. */
export function allowedImpact(options: CommandOptions): Impact | undefined {
  return options.allow === undefined ? undefined : flagChoice(options, 'allow', IMPACTS);
}

/**
 * `--overlay`, `--set`, `--kubelet-config-dir` and the node-specific fields that have a separate option.
 * @throws AppError USAGE (exit code 2) for a `--set` without field or value
 */
export function fieldsRequest(options: CommandOptions): FieldsRequest {
  const { kubeletConfigDir } = options;
  for (const setting of flagList(options, 'set')) splitSetting(setting);
  return {
    overlay: flagText(options, 'overlay'),
    settings: flagList(options, 'set'),
    declared: declaredFields(options),
    ...(typeof kubeletConfigDir === 'boolean' ? { configDir: kubeletConfigDir } : {}),
  };
}

function declaredFields(options: CommandOptions): readonly FieldSetting[] {
  const fields = [
    ['resolvConf', 'resolv-conf'],
    ['cgroupDriver', 'cgroup-driver'],
  ] as const;
  return fields.flatMap(([field, flag]): FieldSetting[] => {
    const value = flagText(options, field);
    return value === undefined ? [] : [{ path: [field], value, source: `--${flag}` }];
  });
}

/**
 * Settings declared for a node, in addition to those in kubeadm's documents.
 * @throws AppError USAGE (exit code 2)
 */
export function nodeRequest(options: CommandOptions): NodeRequest {
  return {
    ...fieldsRequest(options),
    ...extraArgsOf(options),
  };
}

function extraArgsOf(options: CommandOptions): Pick<NodeRequest, 'extraArgs' | 'droppedFlags'> {
  const one = (name: string, value: string | undefined): readonly Arg[] => (value === undefined ? [] : [{ name, value }]);
  const labels = flagList(options, 'nodeLabels');
  const given = flagList(options, 'kubeletExtraArgs');
  const droppedFlags = given.flatMap((text) => DROPPED.exec(text)?.[1] ?? []);
  const extraArgs = [
    ...one('node-ip', flagText(options, 'nodeIp')),
    ...one('node-labels', labels.length === 0 ? undefined : labels.join(',')),
    ...one('cloud-provider', flagText(options, 'cloudProvider')),
    ...one('cloud-config', flagText(options, 'cloudConfig')),
    ...given.filter((text) => !DROPPED.test(text)).map(parseExtraArg),
  ];
  const both = droppedFlags.find((name) => extraArgs.some((arg) => arg.name === name));
  if (both === undefined) return { extraArgs, droppedFlags };
  throw usageError(`the kubelet flag ${both} is set and dropped (${both}-) in the same command`, 'Pass one of them');
}

/** `NAME-`, like labels of kubectl. */
const DROPPED = /^-{0,2}([^=\s]*[^=\s-])-$/;

function parseExtraArg(text: string): Arg {
  const match = /^-{0,2}([^=]+)=([\s\S]*)$/.exec(text);
  if (match) return { name: match[1] as string, value: match[2] as string };
  throw usageError(`--kubelet-extra-args ${text} has neither the form name=value nor name-`, 'For example: --kubelet-extra-args v=4');
}
