import type { JsonObject } from '../../base/json.ts';
import { Memo, TextMemo } from '../../base/memo.ts';
import { type HostPlan, planDocument } from './document.ts';

/** Hosts on which the same is to be done. What is a host's own reads `<node>` and the like when there are several. */
export interface HostGroup extends HostChanges {
  /** In the order given. */
  readonly hosts: readonly string[];
}

/** What is to be done on a host, as a plan document has it. */
export interface HostChanges {
  /** Of the host, then of the cluster for it. */
  readonly changes: readonly JsonObject[];
  readonly deferred: readonly JsonObject[];
}

/** Puts hosts together whose changes are the same but for what is their own: their names and addresses. */
export function foldPlans(plans: readonly HostPlan[]): readonly HostGroup[] {
  const groups = new Map<string, { readonly hosts: string[]; readonly own: HostPlan }>();
  for (const plan of plans) {
    const shared = sharedChangesOf(plan);
    const group = groups.get(shared);
    if (group === undefined) groups.set(shared, { hosts: [plan.name], own: plan });
    else group.hosts.push(plan.name);
  }
  return [...groups].map(([shared, { hosts, own }]) => ({
    hosts,
    ...(hosts.length === 1 ? changesOf(own) : (JSON.parse(shared) as HostChanges)),
  }));
}

/** What is to be done on one host as JSON, what is its own left out: the same text for hosts on which the same is to be done. */
export function sharedChangesOf(plan: HostPlan): string {
  return SHARED.get(plan, '', () => {
    const text = withoutOwn(JSON.stringify(changesOf(plan)), plan);
    return TEXTS.get(text, () => text);
  });
}

/** One text for all hosts that have it in common. */
const TEXTS = new TextMemo<string>();

/** A plan is shown and saved. */
const SHARED = new Memo<HostPlan, string>();

/** What is to be done on one host. */
export function changesOf(plan: HostPlan): HostChanges {
  const { hosts, cluster, deferred } = planDocument([plan], []);
  return { changes: [...(hosts[0]?.changes ?? []), ...cluster.changes], deferred };
}

/** A host's own words, where they stand alone, in place of what they are. */
function withoutOwn(text: string, { name, own = {} }: HostPlan): string {
  const words = [...Object.entries(own), ['host', name] as const].filter(([, value]) => value !== '');
  return words
    .toSorted(([, a], [, b]) => b.length - a.length)
    .reduce((result, [what, value]) => replaceWord(result, JSON.stringify(value).slice(1, -1), `<${what}>`), text);
}

/** Looks for the word itself, not by a pattern: each host of thousands has another one. */
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

/** Not part of a longer name; a dot at its end ends a sentence. */
function isUnmatched(text: string, start: number, end: number): boolean {
  const [before, after] = [text.charAt(start - 1), text.charAt(end)];
  if (before === '.' || NAME_CHARACTER.test(before) || NAME_CHARACTER.test(after)) return false;
  return after !== '.' || !WORD_CHARACTER.test(text.charAt(end + 1));
}
