import type { Arg } from '../base/arg.ts';
import { goDurationMs, parseGoDuration } from '../base/text/go-duration.ts';
import { parseIp } from '../base/text/ip.ts';
import { upTo } from '../base/text/up-to.ts';
import type { PathSegment } from '../codec/field-path.ts';
import type { HostHook, HostHooks } from '../host/hooks.ts';
import type { HostPreparation } from '../host/install/model.ts';
import type { HookName } from '../host/plan/operation.ts';
import type { Taint } from '../kube/taint.ts';
import type { NodeRegistration } from '../kubeadm/config/model.ts';
import { nodeRegistrationFindings } from '../kubeadm/config/validate-parts.ts';
import { flagProblem } from '../kubelet/flags-env.ts';
import { isNodeIp, NODE_IP_FORM } from '../kubelet/node-ip.ts';
import { isReservedLabel, nodeLabelIssues } from '../kubelet/node-labels.ts';
import type { FieldSetting } from '../kubelet/setting.ts';
import { isSafeHostName, isSafeUserName } from '../ssh/names.ts';
import { formatPlace, type HostEntry } from './entries.ts';
import { invalidFleetValue, invalidHostAddress, mutuallyExclusiveMembers } from './fleet-problems.ts';
import { hostPreparation } from './host-preparation.ts';
import { hostVariables } from './host-variables.ts';
import type { Layer } from './layer.ts';
import type { HostRole, ResolvedSsh } from './model.ts';
import type { ProblemCollector, SettingLocation } from './problem-collector.ts';
import type { FleetLayer } from './schema.ts';
import { Scope } from './scope.ts';
import { secretSource } from './secret-source.ts';

/** The merged settings of a host, without resolved bastions. */
export interface HostSettings {
  readonly role: HostRole | 'bastion';
  readonly ssh: Omit<ResolvedSsh, 'jumps' | 'direct'>;
  /** As written, with its place and whether the host itself sets it. */
  readonly bastion: BastionText | null;
  readonly nodeRegistration: NodeRegistration;
  readonly declared: readonly FieldSetting[];
  readonly kubeletConfigDir: true | undefined;
  readonly preparation: HostPreparation | undefined;
  readonly hooks: HostHooks | undefined;
  readonly scope: Scope;
  /** Place of a member. */
  readonly placeOf: (member: 'address' | 'nodeName' | 'nodeIP') => SettingLocation;
}

export interface BastionText {
  readonly text: string;
  readonly place: SettingLocation;
  /** Set by the baseline or a group, whose hosts may include the bastion itself. */
  readonly inherited: boolean;
}

export interface SettingsContext {
  readonly findings: ProblemCollector;
  readonly kubernetesVersion: string | null;
  readonly byAdministrator: boolean;
}

/**
 * Merges the layers of a host: the last value of each member, with templates resolved and values validated.
 * @param layers lowest first: baseline, groups, host
 * @param byAdministrator whether an administrator labels the Nodes and so may set any label
 */
export function hostSettings(
  entry: HostEntry,
  layers: readonly Layer[],
  { findings, kubernetesVersion, byAdministrator }: SettingsContext,
): HostSettings {
  const reader = new SettingsReader(entry, layers, { findings, byAdministrator });
  const address = reader.address();
  const args = reader.extraArgs();
  const registration: NodeRegistration = {
    ...optionalMember('name', reader.text('nodeName')),
    ...optionalMember('criSocket', reader.text('criSocket')),
    ...optionalMember('taints', reader.taints()),
    ...(args.length === 0 ? {} : { kubeletExtraArgs: args.map(({ arg }) => arg) }),
    ...optionalMember('droppedFlags', reader.last('droppedKubeletArgs')?.value),
    ...optionalMember('ignorePreflightErrors', reader.last('ignorePreflightErrors')?.value),
  };
  reader.validate(registration, args);
  return {
    role: roleOf(reader.last('role')?.value ?? 'worker'),
    ssh: reader.ssh(address),
    bastion: reader.bastion(),
    nodeRegistration: registration,
    declared: reader.declared(),
    kubeletConfigDir: reader.last('kubeletConfigDir')?.value === true || undefined,
    preparation: hostPreparation(layers, { scope: reader.scope, findings, kubernetesVersion }),
    hooks: hostHooks(layers, { scope: reader.scope, findings }),
    scope: reader.scope,
    placeOf: (member) => reader.placeOf(member),
  };
}

/** Accepts kubeadm's spelling as well. */
function roleOf(written: NonNullable<FleetLayer['role']>): HostSettings['role'] {
  return written === 'controlPlane' ? 'control-plane' : written;
}

interface Reported<T> {
  readonly value: T;
  readonly layer: Layer;
}

interface PlacedArg {
  readonly arg: Arg;
  readonly place: SettingLocation;
}

type SshMember = keyof NonNullable<FleetLayer['ssh']>;

class SettingsReader {
  readonly scope: Scope;
  readonly #entry: HostEntry;
  readonly #layers: readonly Layer[];
  readonly #findings: ProblemCollector;
  readonly #byAdministrator: boolean;
  /** A label of the fleet file has a finding. */
  #wrongLabels = false;

  constructor(
    entry: HostEntry,
    layers: readonly Layer[],
    { findings, byAdministrator }: Pick<SettingsContext, 'findings' | 'byAdministrator'>,
  ) {
    this.#entry = entry;
    this.#layers = layers;
    this.#findings = findings;
    this.#byAdministrator = byAdministrator;
    this.scope = new Scope(entry.name, hostVariables(entry, layers), findings);
  }

  /** The value of the last layer. */
  last<K extends keyof FleetLayer>(member: K): Reported<NonNullable<FleetLayer[K]>> | null {
    for (let i = this.#layers.length - 1; i >= 0; i--) {
      const layer = this.#layers[i] as Layer;
      const value = layer.written[member];
      if (value !== undefined) return { value: value as NonNullable<FleetLayer[K]>, layer };
    }
    return null;
  }

  placeOf(member: keyof FleetLayer): SettingLocation {
    return this.last(member)?.layer.place([member]) ?? this.#entry.place;
  }

  text(member: 'nodeName' | 'nodeIP' | 'criSocket' | 'resolvConf' | 'cgroupDriver'): string | undefined {
    const reported = this.last(member);
    if (reported === null) return undefined;
    return this.scope.text(reported.value, () => reported.layer.place([member])) ?? undefined;
  }

  /** The value of the address range, otherwise the configured address, otherwise the name. */
  address(): string {
    if (this.#entry.address !== null) return this.#checkedAddress(this.#entry.address, this.placeOf('address'));
    const reported = this.last('address');
    if (reported === null) return this.#entry.name;
    const place = reported.layer.place(['address']);
    const text = this.scope.text(reported.value, () => place);
    return text === null ? this.#entry.name : this.#checkedAddress(text, place);
  }

  #checkedAddress(address: string, place: SettingLocation): string {
    const isIp = parseIp(upTo(address, '%')) !== null;
    if (!isSafeHostName(address) || (!isIp && !/^[\w.%][\w.%-]*$/.test(address)))
      this.#findings.addShared(`address ${address}`, place, () => invalidHostAddress(address));
    return address;
  }

  ssh(address: string): HostSettings['ssh'] {
    const user = this.#sshText('user');
    const port = this.#port();
    return {
      address,
      ...optionalMember('user', user),
      ...optionalMember('port', port),
      identityFiles: this.#sshTexts('identityFiles'),
      become: this.#lastSsh('become')?.value ?? 'auto',
      transport: this.#lastSsh('transport')?.value ?? 'builtin',
      hostKeys: this.#hostKeys(),
      ...optionalMember('connectTimeoutMs', this.#sshMs('connectTimeout')),
      ...optionalMember('commandTimeoutMs', this.#sshMs('commandTimeout')),
    };
  }

  bastion(): BastionText | null {
    const reported = this.#lastSsh('bastion');
    if (reported === null) return null;
    const place = reported.layer.place(['ssh', 'bastion']);
    const text = this.scope.text(reported.value, () => place);
    return text === null ? null : { text, place, inherited: !this.#entry.layers.includes(reported.layer) };
  }

  #lastSsh<K extends SshMember>(member: K): Reported<NonNullable<NonNullable<FleetLayer['ssh']>[K]>> | null {
    for (let i = this.#layers.length - 1; i >= 0; i--) {
      const layer = this.#layers[i] as Layer;
      const value = layer.written.ssh?.[member];
      if (value !== undefined) return { value: value as NonNullable<NonNullable<FleetLayer['ssh']>[K]>, layer };
    }
    return null;
  }

  #sshMs(member: 'connectTimeout' | 'commandTimeout'): number | undefined {
    const text = this.#lastSsh(member)?.value;
    return text === undefined ? undefined : Number((parseGoDuration(text) ?? 0n) / 1_000_000n);
  }

  #sshText(member: 'user'): string | undefined {
    const reported = this.#lastSsh(member);
    if (reported === null) return undefined;
    const place = reported.layer.place(['ssh', member]);
    const text = this.scope.text(reported.value, () => place);
    if (text === null) return undefined;
    if (/\s|^$/.test(text) || !isSafeUserName(text))
      this.#findings.addShared(`user ${text}`, place, () => invalidFleetValue(`${JSON.stringify(text)} is not a valid user name`));
    return text;
  }

  #sshTexts(member: 'identityFiles'): readonly string[] {
    const reported = this.#lastSsh(member);
    if (reported === null) return [];
    return reported.value.flatMap((text, i) => this.scope.text(text, () => reported.layer.place(['ssh', member, i])) ?? []);
  }

  /** As lines of a known_hosts file, with their positions in the fleet file. */
  #hostKeys(): ResolvedSsh['hostKeys'] {
    const reported = this.#lastSsh('hostKeys');
    if (reported === null) return [];
    return reported.value.map((key, i) => {
      const { file, line } = reported.layer.place(['ssh', 'hostKeys', i]).position;
      return { ...key, file, line, marker: 'none' as const, hosts: this.#entry.name };
    });
  }

  #port(): number | undefined {
    const reported = this.#lastSsh('port');
    if (reported === null || typeof reported.value === 'number') return reported?.value as number | undefined;
    const place = reported.layer.place(['ssh', 'port']);
    const text = this.scope.text(reported.value, () => place);
    if (text === null) return undefined;
    if (/^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535) return Number(text);
    const problem = invalidFleetValue(`${JSON.stringify(text)} is not a valid port`, 'Use a port from 1 to 65535');
    this.#findings.addShared(`port ${text}`, place, () => problem);
    return undefined;
  }

  taints(): readonly Taint[] | undefined {
    const reported = this.last('taints');
    return reported?.value.map((taint, i): Taint => {
      const fill = (member: 'key' | 'value', text: string): string =>
        this.scope.text(text, () => reported.layer.place(['taints', i, member])) ?? text;
      const { key, value } = taint;
      return { ...taint, key: fill('key', key), ...(value === undefined ? {} : { value: fill('value', value) }) };
    });
  }

  /**
   * `node-ip`, `node-labels`, then the flags of the layers: a flag of a higher layer replaces those of the
   * same name.
   */
  extraArgs(): readonly PlacedArg[] {
    let args: readonly PlacedArg[] = [];
    for (const layer of this.#layers) {
      const own = (layer.written.kubeletExtraArgs ?? []).map(({ name, value }, i): PlacedArg => {
        const filled = this.scope.text(value, () => layer.place(['kubeletExtraArgs', i, 'value']));
        return { arg: { name, value: filled ?? value }, place: layer.place(['kubeletExtraArgs', i, 'name']) };
      });
      if (own.length > 0) args = [...args.filter(({ arg }) => !own.some((other) => other.arg.name === arg.name)), ...own];
    }
    const given = (name: string): PlacedArg | undefined => args.find(({ arg }) => arg.name === name);
    const [nodeIP, labels] = [this.text('nodeIP'), this.#labels()];
    const own = (name: string, member: 'nodeIP' | 'labels', value: string | undefined): readonly PlacedArg[] => {
      if (value === undefined) return [];
      const same = given(name);
      if (same) this.#findings.addShared(`twice ${name}`, same.place, () => mutuallyExclusiveMembers(member, `the flag ${name}`));
      return [{ arg: { name, value }, place: this.placeOf(member) }];
    };
    return [...own('node-ip', 'nodeIP', this.#checkedNodeIP(nodeIP)), ...own('node-labels', 'labels', labels), ...args];
  }

  #checkedNodeIP(nodeIP: string | undefined): string | undefined {
    if (nodeIP === undefined) return undefined;
    if (isNodeIp(nodeIP)) return nodeIP;
    const problem = invalidFleetValue(`${JSON.stringify(nodeIP)} is not a valid node IP`, NODE_IP_FORM);
    this.#findings.addShared(`nodeIP ${nodeIP}`, this.placeOf('nodeIP'), () => problem);
    return nodeIP;
  }

  #labels(): string | undefined {
    const labels = new Map<string, { readonly value: string; readonly place: SettingLocation }>();
    for (const layer of this.#layers) {
      for (const [key, written] of Object.entries(layer.written.labels ?? {})) {
        const place = (): SettingLocation => layer.place(['labels', key]);
        const value = this.scope.text(written, place);
        if (value !== null) labels.set(key, { value, place: place() });
      }
    }
    for (const [key, { value, place }] of labels) {
      const byAdministrator = this.#byAdministrator;
      const issues = /,/.test(key + value)
        ? [`${JSON.stringify(value)} contains a comma`]
        : nodeLabelIssues(`${key}=${value}`, { byAdministrator });
      const hint = isReservedLabel(key)
        ? 'A kubelet may not set this label on its own Node. Set cluster.kubeconfig to an administrator kubeconfig, so that kubeletadm can set the label'
        : undefined;
      if (issues.length > 0) this.#wrongLabels = true;
      for (const issue of issues) this.#findings.addShared(issue, place, () => invalidFleetValue(issue, hint));
    }
    return labels.size === 0 ? undefined : [...labels].map(([key, { value }]) => `${key}=${value}`).join(',');
  }

  /** Settings that are a separate layer of a node configuration. */
  declared(): readonly FieldSetting[] {
    return (['resolvConf', 'cgroupDriver'] as const).flatMap((member): FieldSetting[] => {
      const value = this.text(member);
      return value === undefined ? [] : [{ path: [member], value, source: formatPlace(this.placeOf(member)) }];
    });
  }

  /** Applies kubeadm's rules for `nodeRegistration`, with positions in the fleet file. */
  validate(registration: NodeRegistration, args: readonly PlacedArg[]): void {
    for (const { arg, place } of args) {
      // The labels of the file have findings of their own.
      const problem = arg.name === 'node-labels' && this.#wrongLabels ? null : flagProblem(arg);
      if (problem === null) continue;
      this.#findings.addShared(`flag ${arg.name}`, place, (others) => {
        const hosts = others === 0 ? `host ${this.scope.host}` : `${others + 1} hosts (${this.scope.host}, ...)`;
        return { ...problem, message: `kubelet flag ${arg.name} of ${hosts}: ${problem.message}` };
      });
    }
    for (const { path, problem } of nodeRegistrationFindings('node', registration)) {
      const [, member = '', index] = /^node\.(\w+)(?:\[([0-9]+)\])?/.exec(path) ?? [];
      const place = member === 'kubeletExtraArgs' ? args[Number(index)]?.place : this.#placeOfRegistration(member, index);
      this.#findings.addShared(problem.message, place ?? this.#entry.place, () => problem);
    }
  }

  #placeOfRegistration(member: string, index: string | undefined): SettingLocation {
    const name = (member === 'name' ? 'nodeName' : member) as keyof FleetLayer;
    const steps: PathSegment[] = index === undefined ? [name] : [name, Number(index)];
    return this.last(name)?.layer.place(steps) ?? this.#entry.place;
  }
}

function optionalMember<K extends string, T>(name: K, value: T | undefined): { readonly [P in K]?: T } {
  return value === undefined ? {} : ({ [name]: value } as { readonly [P in K]: T });
}

const DEFAULT_HOOK_TIMEOUT_SECONDS = 120;

/**
 * Resolves the hooks of a host. The last layer that declares a hook wins; an empty command removes the hook of a lower
 * layer.
 * @param layers lowest first
 */
function hostHooks(layers: readonly Layer[], context: HookContext): HostHooks | undefined {
  const hooks = { beforeChange: hookOf(layers, context, 'beforeChange'), afterChange: hookOf(layers, context, 'afterChange') };
  return hooks.beforeChange === null && hooks.afterChange === null ? undefined : hooks;
}

interface HookContext {
  readonly scope: Scope;
  readonly findings: ProblemCollector;
}

function hookOf(layers: readonly Layer[], { scope, findings }: HookContext, name: HookName): HostHook | null {
  const layer = layers.findLast(({ written }) => written.hooks?.[name] !== undefined);
  const written = layer?.written.hooks?.[name];
  if (layer === undefined || written === undefined || written.command.length === 0) return null;
  const resolved = (text: string, ...steps: readonly number[]): string =>
    scope.text(text, () => layer.place(['hooks', name, 'command', ...steps])) ?? text;
  const command =
    typeof written.command === 'string' ? ['sh', '-c', resolved(written.command)] : written.command.map((word, i) => resolved(word, i));
  const timeoutSeconds = written.timeout === undefined ? DEFAULT_HOOK_TIMEOUT_SECONDS : Math.ceil(goDurationMs(written.timeout) / 1000);
  const secrets = Object.entries(written.env ?? {}).map(([variable, source]) => {
    const place = layer.place(['hooks', name, 'env', variable]);
    return [variable, secretSource(variable, source, (problem) => findings.addShared('hook source', place, () => problem))] as const;
  });
  return { command, timeoutSeconds, layer: layer.label, ...(secrets.length === 0 ? {} : { env: Object.fromEntries(secrets) }) };
}
