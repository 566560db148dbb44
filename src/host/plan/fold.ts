import type { JsonObject } from '../../base/json.ts';
import { memoized } from '../../base/memoized.ts';
import { replaceWord } from '../../base/text/replace-word.ts';
import { type HostPlan, planDocument } from './document.ts';
import { type DiffTexts, diffEqualTextsOnce, unifiedDiff } from './text-diff.ts';

/** Hosts with equal changes. With several hosts, host-specific values are placeholders such as `<node>`. */
export interface HostGroup extends HostChanges {
  readonly hosts: readonly string[];
}

/** The changes of a host in the format of the plan document. */
export interface HostChanges {
  /** Changes of the host, then the cluster changes for this host. */
  readonly changes: readonly JsonObject[];
  readonly deferred: readonly JsonObject[];
}

/**
 * Groups hosts whose changes are equal except for their names and addresses.
 * @param shownOf what is shown of changes: hosts are grouped by it. Default: all members
 */
export function foldPlans(plans: readonly HostPlan[], shownOf?: (changes: HostChanges) => string): readonly HostGroup[] {
  const diffTexts = diffEqualTextsOnce();
  const owners = new Map(plans.map((plan) => [plan.name, plan]));
  const shared = plans.map((plan) => [plan.name, sharedChangesOf(plan, diffTexts)] as const);
  return foldChanges(shared, (text) => JSON.parse(text) as HostChanges, shownOf).map((group) => {
    const own = group.hosts.length === 1 ? owners.get(group.hosts[0] ?? '') : undefined;
    return own === undefined ? group : { ...group, ...changesOf(own) };
  });
}

/**
 * Groups hosts by what is shown of their changes, in the order of the hosts.
 * @param hosts name and key of the changes
 * @param shownOf default: the key
 */
export function foldChanges(
  hosts: readonly (readonly [name: string, key: string])[],
  read: (key: string) => HostChanges,
  shownOf?: (changes: HostChanges) => string,
): readonly HostGroup[] {
  const shownOfKey = memoized((key: string) => {
    const changes = read(key);
    return { shown: shownOf?.(changes) ?? key, changes };
  });
  const groups = new Map<string, HostChanges & { readonly hosts: string[] }>();
  for (const [name, key] of hosts) {
    const { shown, changes } = shownOfKey(key);
    const group = groups.get(shown);
    if (group === undefined) groups.set(shown, { hosts: [name], ...changes });
    else group.hosts.push(name);
  }
  return [...groups.values()];
}

/**
 * With placeholders for host-specific values: equal texts for equal changes. For many hosts:
 * `diffEqualTextsOnce()`.
 */
export function sharedChangesOf(plan: HostPlan, diffTexts: DiffTexts = unifiedDiff): string {
  return withoutOwn(JSON.stringify(changesOf(plan, diffTexts)), plan);
}

/** For many hosts: `diffEqualTextsOnce()`. */
export function changesOf(plan: HostPlan, diffTexts: DiffTexts = unifiedDiff): HostChanges {
  const { hosts, cluster, deferred } = planDocument([plan], [], null, diffTexts);
  return { changes: [...(hosts[0]?.changes ?? []), ...cluster.changes], deferred };
}

/** Replaces host-specific values, where they are complete words, by placeholders. */
function withoutOwn(text: string, { name, own = {} }: HostPlan): string {
  const words = [...Object.entries(own), ['host', name] as const].filter(([, value]) => value !== '');
  return words
    .toSorted(([, a], [, b]) => b.length - a.length)
    .reduce((result, [what, value]) => replaceWord(result, JSON.stringify(value).slice(1, -1), `<${what}>`), text);
}
