import { type AppError, usageError } from '../../base/errors.ts';
import { closestName } from '../../base/text/closest-name.ts';
import type { LabelSelector, Labels } from '../../kube/label-selector.ts';
import { CONTROL_PLANE_LABEL } from '../../kube/node-marks.ts';
import { argValue } from '../../kubeadm/config/model.ts';
import { matchPattern } from '../../ssh/pattern.ts';
import type { ResolvedFleet, ResolvedHost } from './model.ts';
import { expandRanges } from './range.ts';

export interface Selection {
  /** Patterns of `patternOf`. Empty: all hosts. */
  readonly limit: readonly string[];
  /** Hosts in any of these groups. Empty: all hosts. */
  readonly groups: readonly string[];
  /** Hosts with these labels in the fleet file. Undefined: all hosts. */
  readonly selector?: LabelSelector | undefined;
}

/** The fields of a host that a Selection is matched against. */
export type Selectable = Pick<ResolvedHost, 'name' | 'groups' | 'role' | 'nodeRegistration'>;

/**
 * Selects hosts, in file order.
 * @throws AppError USAGE for a pattern or group without a match, which is probably a typo
 */
export function selectHosts<H extends Selectable>(hosts: readonly H[], { limit, groups, selector }: Selection): readonly H[] {
  const known = new Set(hosts.flatMap((host) => host.groups));
  for (const group of groups)
    if (!known.has(group)) throw nodes(`--group ${group}: no group with this name contains hosts`, group, [...known]);
  const patterns = limit.map((text) => ({ text, ...patternOf(text), matches: new Set(hostsOfPattern(hosts, text)) }));
  for (const { text, name, matches } of patterns)
    if (matches.size === 0) throw nodes(`--limit ${text}: no host, group or nodeName matches`, name, knownNames(hosts));
  const desired = patterns.filter(({ isNegated }) => !isNegated);
  const selected = hosts.filter(
    (host) =>
      (groups.length === 0 || groups.some((group) => host.groups.includes(group))) &&
      (desired.length === 0 || desired.some(({ matches }) => matches.has(host))) &&
      !patterns.some(({ isNegated, matches }) => isNegated && matches.has(host)) &&
      (selector === undefined || selector.matches(labelsOfHost(host))),
  );
  if (selected.length > 0) return selected;
  const all = limit.length + groups.length === 0;
  if (selector !== undefined)
    throw usageError(
      `no ${all ? '' : 'selected '}host has labels that match --selector ${selector.text}`,
      'List the labels of the fleet file: kubeletadm fleet inventory -o wide',
    );
  throw usageError('no host matches --limit and --group', 'List hosts and groups: kubeletadm fleet inventory');
}

/**
 * Splits `!node/edge-1`. The name is that of a host, of a group or of a Node, with `*`, `?` and ranges; a leading `!` excludes.
 * `host/` is ignored; `node/` names Nodes only.
 */
export function patternOf(text: string): { readonly isNegated: boolean; readonly isNode: boolean; readonly name: string } {
  const [, sign, type, name = ''] = /^(!?)(?:(host|node)s?\/)?(.*)$/s.exec(text) ?? [];
  return { isNegated: sign === '!', isNode: type === 'node', name };
}

/** The hosts that a pattern matches: by host or group, otherwise by Node, as far as the fleet file names the Nodes. */
export function hostsOfPattern<H extends Selectable>(hosts: readonly H[], text: string): readonly H[] {
  const { isNode, name } = patternOf(text);
  const found = isNode ? [] : hosts.filter(hostMatcher(name));
  if (found.length > 0) return found;
  const matches = hostMatcher(name.toLowerCase());
  const nodeOf = nodesByFile(hosts);
  return hosts.filter((host) => {
    const node = nodeOf(host);
    return node !== null && matches({ name: node, groups: [] });
  });
}

/** The host with a name, else that of a Node, as far as the fleet file names the Nodes. `node/NAME` is always a Node. */
export function hostNamed<H extends Selectable>(hosts: readonly H[], text: string): H | undefined {
  const { isNode, name } = patternOf(text);
  const named = isNode ? undefined : hosts.find((host) => host.name === name);
  const nodeOf = nodesByFile(hosts);
  return named ?? hosts.find((host) => nodeOf(host) === name.toLowerCase());
}

export function unknownHost({ file, hosts }: Pick<ResolvedFleet, 'file' | 'hosts'>, text: string): AppError {
  const likely = closestName(patternOf(text).name, knownNames(hosts));
  const hint = likely === null ? `List the hosts: kubeletadm fleet inventory -f ${file}` : `Did you mean ${likely}?`;
  return usageError(`${file} has no host or nodeName ${patternOf(text).name}`, hint);
}

/** The Node of a host by the fleet file: declared, else with the name of the host, unless another host declares that. */
export function nodesByFile(hosts: readonly Selectable[]): (host: Selectable) => string | null {
  const declared = new Set(hosts.map(declaredNode));
  return (host) => declaredNode(host) ?? (declared.has(host.name.toLowerCase()) ? null : host.name.toLowerCase());
}

/** The Node that the fleet file declares for a host: `nodeName`. Null: none. */
export function declaredNode({ nodeRegistration: { name } }: Pick<ResolvedHost, 'nodeRegistration'>): string | null {
  return name?.trim().toLowerCase() ?? null;
}

export function knownNames(hosts: readonly Selectable[]): readonly string[] {
  return [...new Set(hosts.flatMap((host) => [host.name, ...host.groups, declaredNode(host) ?? host.name]))];
}

/**
 * The labels that a fleet file declares for the Node of a host: its `labels`, those of its groups and of the baseline, or the flag
 * `node-labels`. A control plane has the label that kubeadm sets.
 */
export function labelsOfHost({ role, nodeRegistration }: Pick<ResolvedHost, 'role' | 'nodeRegistration'>): Labels {
  const written = (argValue(nodeRegistration.kubeletExtraArgs, 'node-labels') ?? '').split(',').filter((label) => label.includes('='));
  const declared = written.map((label) => [label.slice(0, label.indexOf('=')).trim(), label.slice(label.indexOf('=') + 1).trim()]);
  return { ...(role === 'control-plane' ? { [CONTROL_PLANE_LABEL]: '' } : {}), ...Object.fromEntries(declared) };
}

/**
 * Returns a function that matches hosts by name or group. Ranges have the syntax of the file and of messages:
 * `edge-[001:020]`. A text with brackets that are not a range matches no host.
 */
export function hostMatcher(pattern: string): (host: Pick<Selectable, 'name' | 'groups'>) => boolean {
  const expansion = expandRanges(pattern);
  const texts = 'items' in expansion ? expansion.items.map(({ text }) => text) : [];
  const names = new Set(texts);
  const patterns = texts.filter((text) => /[*?]/.test(text));
  return ({ name, groups }) => names.has(name) || patterns.some((text) => matchPattern(name, text)) || groups.includes(pattern);
}

function nodes(message: string, name: string, known: readonly string[]) {
  const likely = closestName(name, known);
  return usageError(message, likely === null ? 'List hosts and groups: kubeletadm fleet inventory' : `Did you mean ${likely}?`);
}
