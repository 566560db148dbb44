import { usageError } from '../base/errors.ts';
import { closestName } from '../base/text/closest-name.ts';
import type { LabelSelector, Labels } from '../kube/label-selector.ts';
import { CONTROL_PLANE_LABEL } from '../kube/node-marks.ts';
import { argValue } from '../kubeadm/config/model.ts';
import { matchPattern } from '../ssh/pattern.ts';
import type { ResolvedHost } from './model.ts';
import { expandRanges } from './range.ts';

export interface Selection {
  /** Names with `*`, `?` and ranges, or names of groups; a leading `!` excludes, a leading `host/` is ignored. Empty: all hosts. */
  readonly limit: readonly string[];
  /** Hosts in any of these groups. Empty: all hosts. */
  readonly groups: readonly string[];
  /** Hosts with these labels in the fleet file. Undefined: all hosts. */
  readonly selector?: LabelSelector | undefined;
}

/** All hosts. */
export const ALL_HOSTS: Selection = { limit: [], groups: [] };

type Named = Pick<ResolvedHost, 'name' | 'groups'>;
type Selectable = Named & Pick<ResolvedHost, 'role' | 'nodeRegistration'>;

/**
 * Selects hosts, in file order.
 * @throws AppError USAGE for a pattern or group without a match, which is probably a typo
 */
export function selectHosts<H extends Selectable>(hosts: readonly H[], { limit, groups, selector }: Selection): readonly H[] {
  const known = new Set(hosts.flatMap((host) => host.groups));
  for (const group of groups)
    if (!known.has(group)) throw nodes(`--group ${group}: no group with this name contains hosts`, group, [...known]);
  const patterns = limit.map((text) => {
    const pattern = text.replace(/^!/, '').replace(/^hosts?\//, '');
    return { text, pattern, isNegated: text.startsWith('!'), matches: hostMatcher(pattern) };
  });
  for (const { text, pattern, matches } of patterns)
    if (!hosts.some(matches))
      throw nodes(`--limit ${text}: no host or group matches`, pattern, [...hosts.map(({ name }) => name), ...known]);
  const desired = patterns.filter(({ isNegated }) => !isNegated);
  const selected = hosts.filter(
    (host) =>
      (groups.length === 0 || groups.some((group) => host.groups.includes(group))) &&
      (desired.length === 0 || desired.some(({ matches }) => matches(host))) &&
      !patterns.some(({ isNegated, matches }) => isNegated && matches(host)) &&
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
export function hostMatcher(pattern: string): (host: Named) => boolean {
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
