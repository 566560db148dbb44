import type { JsonObject } from '../../base/json.ts';
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

/** Groups hosts whose changes are equal except for their names and addresses. */
export function foldPlans(plans: readonly HostPlan[]): readonly HostGroup[] {
  const diffTexts = diffEqualTextsOnce();
  const groups = new Map<string, { readonly hosts: string[]; readonly own: HostPlan }>();
  for (const plan of plans) {
    const shared = sharedChangesOf(plan, diffTexts);
    const group = groups.get(shared);
    if (group === undefined) groups.set(shared, { hosts: [plan.name], own: plan });
    else group.hosts.push(plan.name);
  }
  return [...groups].map(([shared, { hosts, own }]) => ({
    hosts,
    ...(hosts.length === 1 ? changesOf(own) : (JSON.parse(shared) as HostChanges)),
  }));
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

/** Searches a fixed string: a regular expression per host would be slow for thousands of hosts. */
function replaceWord(text: string, word: string, by: string): string {
  let result = '';
  let from = 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at)) {
    const end = at + word.length;
    if (isUnmatched(text, at, end)) {
      result += text.slice(from, at) + by;
      from = end;
      at = end;
    } else at++;
  }
  return from === 0 ? text : result + text.slice(from);
}

const NAME_CHARACTER = /[\w-]/;
const WORD_CHARACTER = /\w/;

/** Whether the match is not part of a longer name; a trailing dot may end a sentence. */
function isUnmatched(text: string, start: number, end: number): boolean {
  const [before, after] = [text.charAt(start - 1), text.charAt(end)];
  if (before === '.' || NAME_CHARACTER.test(before) || NAME_CHARACTER.test(after)) return false;
  return after !== '.' || !WORD_CHARACTER.test(text.charAt(end + 1));
}
