import type { Arg } from '../../base/arg.ts';
import { present } from '../../base/present.ts';
import { goDurationMs } from '../../base/text/go-duration.ts';
import { parseIp } from '../../base/text/ip.ts';
import { upTo } from '../../base/text/up-to.ts';
import type { HostHook, HostHooks } from '../../host/hooks.ts';
import type { HookName } from '../../host/operation/operation.ts';
import type { NodeRegistration } from '../../kubeadm/config/model.ts';
import { nodeRegistrationFindings } from '../../kubeadm/config/validate-parts.ts';
import { flagProblem } from '../../kubelet/flags/flags-env.ts';
import { isNodeIp, NODE_IP_FORM } from '../../kubelet/flags/node-ip.ts';
import { isReservedLabel, nodeLabelIssues } from '../../kubelet/flags/node-labels.ts';
import { isSafeHostName, isSafeUserName } from '../../ssh/destination.ts';
import { formatPlace, type HostEntry } from './entries.ts';
import { invalidFleetValue, invalidHostAddress, mutuallyExclusiveMembers } from './fleet-problems.ts';
import { hostPreparation, secretSource } from './host-preparation.ts';
import { hostVariables } from './host-variables.ts';
import type { Layer } from './layer.ts';
import { type MergedHost, mergeLayers, type SettingsContext } from './merge-layers.ts';
import type { HostRole, PlannedSettings, ResolvedSsh } from './model.ts';
import type { SettingLocation } from './problem-collector.ts';
import type { FleetLayer } from './schema.ts';
import { Scope } from './scope.ts';

export interface HostSettings {
  readonly role: HostRole | 'bastion';
  readonly ssh: Omit<ResolvedSsh, 'jumps' | 'direct'>;
  /** As written, with its place and whether the host itself sets it. */
  readonly bastion: BastionText | null;
  readonly node: NodeSettings;
  readonly scope: Scope;
  readonly placeOf: (member: 'address' | 'nodeName' | 'nodeIP') => SettingLocation;
}

type NodeSettings = Omit<PlannedSettings, 'name' | 'role' | 'groups' | 'ssh'>;

export interface BastionText {
  readonly text: string;
  readonly place: SettingLocation;
  /** Set by the baseline or a group, whose hosts may include the bastion itself. */
  readonly inherited: boolean;
}

/** How the settings of a node follow from the merged settings of its host; undefined: not declared. */
const RESOLVE: { readonly [K in keyof NodeSettings]-?: (host: MergedHost) => NodeSettings[K] | undefined } = {
  nodeRegistration,
  declared: declaredFields,
  kubeletConfigDir: ({ setting }) => setting('kubeletConfigDir') || undefined,
  preparation: hostPreparation,
  hooks: hostHooks,
};

/**
 * Resolves the settings of a host from its layers, and validates the values.
 * @param layers lowest first: baseline, groups, host
 */
export function hostSettings(entry: HostEntry, layers: readonly Layer[], context: SettingsContext): HostSettings {
  const scope = new Scope(entry.name, hostVariables(entry, layers), context.findings);
  const host = mergeLayers(entry, layers, { ...context, scope });
  return {
    role: roleOf(host.setting('role') ?? 'worker'),
    ssh: sshSettings(host),
    bastion: bastionText(host),
    node: present(Object.fromEntries(Object.entries(RESOLVE).map(([name, resolve]) => [name, resolve(host)]))) as NodeSettings,
    scope,
    // Without the merged settings, which would be kept for all hosts of a fleet.
    placeOf: (member) => layers.findLast(({ written }) => written[member] !== undefined)?.place([member]) ?? entry.place,
  };
}

/** Accepts kubeadm's spelling as well. */
function roleOf(written: NonNullable<FleetLayer['role']>): HostSettings['role'] {
  return written === 'controlPlane' ? 'control-plane' : written;
}

function sshSettings(host: MergedHost): HostSettings['ssh'] {
  const { entry, setting, place, report } = host;
  const {
    user,
    identityFiles = [],
    become = 'auto',
    transport = 'builtin',
    hostKeys = [],
    connectTimeout,
    commandTimeout,
  } = setting('ssh') ?? {};
  if (user !== undefined && (/\s|^$/.test(user) || !isSafeUserName(user)))
    report(invalidFleetValue(`${JSON.stringify(user)} is not a valid user name`), place('ssh', 'user'));
  const milliseconds = (text: string | undefined): number | undefined => (text === undefined ? undefined : goDurationMs(text));
  return {
    address: hostAddress(host),
    ...present({ user, port: sshPort(host) }),
    identityFiles,
    become,
    transport,
    // As lines of a known_hosts file, with their positions in the fleet file.
    hostKeys: hostKeys.map((key, i) => {
      const { file, line } = place('ssh', 'hostKeys', i).position;
      return { ...key, file, line, marker: 'none' as const, hosts: entry.name };
    }),
    ...present({ connectTimeoutMs: milliseconds(connectTimeout), commandTimeoutMs: milliseconds(commandTimeout) }),
  };
}

/** The value of the address range, otherwise the configured address, otherwise the name. */
function hostAddress({ entry, setting, place, report }: MergedHost): string {
  const address = entry.address ?? setting('address');
  if (address === undefined) return entry.name;
  const isIp = parseIp(upTo(address, '%')) !== null;
  if (!isSafeHostName(address) || (!isIp && !/^[\w.%][\w.%-]*$/.test(address)))
    report(invalidHostAddress(address), place('address'), `address ${address}`);
  return address;
}

function sshPort({ setting, place, report }: MergedHost): number | undefined {
  const port = setting('ssh')?.port;
  if (typeof port !== 'string') return port;
  if (/^[0-9]{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535) return Number(port);
  report(invalidFleetValue(`${JSON.stringify(port)} is not a valid port`, 'Use a port from 1 to 65535'), place('ssh', 'port'));
  return undefined;
}

function bastionText({ entry, setting, layerOf, place }: MergedHost): BastionText | null {
  const text = setting('ssh')?.bastion;
  if (text === undefined) return null;
  return { text, place: place('ssh', 'bastion'), inherited: !entry.layers.some((layer) => layer === layerOf('ssh', 'bastion')) };
}

interface PlacedArg {
  readonly arg: Arg;
  readonly place: SettingLocation;
}

function nodeRegistration(host: MergedHost): NodeSettings['nodeRegistration'] {
  const { setting } = host;
  const labels = nodeLabels(host);
  const args = extraArgs(host, labels.value);
  const registration = present({
    name: setting('nodeName'),
    criSocket: setting('criSocket'),
    taints: setting('taints'),
    kubeletExtraArgs: args.length === 0 ? undefined : args.map(({ arg }) => arg),
    droppedFlags: setting('droppedKubeletArgs'),
    ignorePreflightErrors: setting('ignorePreflightErrors'),
  });
  validateRegistration(host, registration, { args, labelsAreValid: labels.isValid });
  return registration;
}

/** `node-ip`, `node-labels`, then the flags of the layers. */
function extraArgs({ setting, place, report }: MergedHost, labels: string | undefined): readonly PlacedArg[] {
  const args = (setting('kubeletExtraArgs') ?? []).map((arg, i): PlacedArg => ({ arg, place: place('kubeletExtraArgs', i, 'name') }));
  const nodeIP = setting('nodeIP');
  if (nodeIP !== undefined && !isNodeIp(nodeIP))
    report(invalidFleetValue(`${JSON.stringify(nodeIP)} is not a valid node IP`, NODE_IP_FORM), place('nodeIP'));
  const own = (name: string, member: 'nodeIP' | 'labels', value: string | undefined): readonly PlacedArg[] => {
    if (value === undefined) return [];
    const same = args.find(({ arg }) => arg.name === name);
    if (same) report(mutuallyExclusiveMembers(member, `the flag ${name}`), same.place);
    return [{ arg: { name, value }, place: place(member) }];
  };
  return [...own('node-ip', 'nodeIP', nodeIP), ...own('node-labels', 'labels', labels), ...args];
}

/** The labels as value of the flag `node-labels`. */
function nodeLabels({ setting, byAdministrator, place, report }: MergedHost): {
  readonly value: string | undefined;
  readonly isValid: boolean;
} {
  const labels = setting('labels') ?? {};
  let isValid = true;
  for (const [key, value] of Object.entries(labels)) {
    const issues = /,/.test(key + value)
      ? [`${JSON.stringify(value)} contains a comma`]
      : nodeLabelIssues(`${key}=${value}`, { byAdministrator });
    const hint = isReservedLabel(key)
      ? 'A kubelet may not set this label on its own Node. Set cluster.kubeconfig to an administrator kubeconfig, so that kubeletadm can set the label'
      : undefined;
    for (const issue of issues) report(invalidFleetValue(issue, hint), place('labels', key));
    if (issues.length > 0) isValid = false;
  }
  const texts = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return { value: texts.length === 0 ? undefined : texts.join(','), isValid };
}

/** Settings that are a separate layer of a node configuration. */
function declaredFields({ setting, place }: MergedHost): NodeSettings['declared'] {
  return (['resolvConf', 'cgroupDriver'] as const).flatMap((member) => {
    const value = setting(member);
    return value === undefined ? [] : [{ path: [member], value, source: formatPlace(place(member)) }];
  });
}

/** Applies the rules of kubelet flags and kubeadm's rules for `nodeRegistration`, with positions in the fleet file. */
function validateRegistration(
  host: MergedHost,
  registration: NodeRegistration,
  { args, labelsAreValid }: { readonly args: readonly PlacedArg[]; readonly labelsAreValid: boolean },
): void {
  const { entry, findings, place, report } = host;
  for (const { arg, place: at } of args) {
    // The labels of the file have findings of their own.
    const problem = arg.name === 'node-labels' && !labelsAreValid ? null : flagProblem(arg);
    if (problem === null) continue;
    findings.addShared(`flag ${arg.name}`, at, (others) => {
      const hosts = others === 0 ? `host ${entry.name}` : `${others + 1} hosts (${entry.name}, ...)`;
      return { ...problem, message: `kubelet flag ${arg.name} of ${hosts}: ${problem.message}` };
    });
  }
  for (const { path, problem } of nodeRegistrationFindings('node', registration)) {
    const [, member = '', index] = /^node\.(\w+)(?:\[([0-9]+)\])?/.exec(path) ?? [];
    const name = (member === 'name' ? 'nodeName' : member) as keyof FleetLayer;
    const steps = index === undefined ? [] : [Number(index)];
    const at = (member === 'kubeletExtraArgs' ? args[Number(index)]?.place : undefined) ?? place(name, ...steps);
    report(problem, at);
  }
}

const DEFAULT_HOOK_TIMEOUT_SECONDS = 120;

function hostHooks(host: MergedHost): HostHooks | undefined {
  const hooks = { beforeChange: hostHook(host, 'beforeChange'), afterChange: hostHook(host, 'afterChange') };
  return hooks.beforeChange === null && hooks.afterChange === null ? undefined : hooks;
}

/** An empty command removes the hook of a lower layer. */
function hostHook({ setting, layerOf, place, report }: MergedHost, name: HookName): HostHook | null {
  const written = setting('hooks')?.[name];
  if (written === undefined || written.command.length === 0) return null;
  const { command, timeout, env = {} } = written;
  const secrets = Object.entries(env).map(([variable, source]) => {
    const at = place('hooks', name, 'env', variable);
    return [variable, secretSource(variable, source, (problem) => report(problem, at))] as const;
  });
  return {
    command: typeof command === 'string' ? ['sh', '-c', command] : command,
    timeoutSeconds: timeout === undefined ? DEFAULT_HOOK_TIMEOUT_SECONDS : Math.ceil(goDurationMs(timeout) / 1000),
    layer: layerOf('hooks', name)?.label ?? '',
    ...(secrets.length === 0 ? {} : { env: Object.fromEntries(secrets) }),
  };
}
