/** A wording that texts must not use, with the wording to use instead. */
export interface RejectedIdiom {
  readonly pattern: RegExp;
  readonly instead: string;
}

/**
 * Wordings that are wrong in every context; reading and the terms of docs/architecture.md decide about all others.
 * `[pattern, wording to use instead]`; patterns ignore case.
 */
const IDIOMS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b(?:whoever|whosever|whatever|nobody|somebody)\b/, 'the actor or the object'],
  [/\bmend(?:s|ed|ing)?\b/, 'fix; hint'],
  [/\bfor ever\b/, 'never expires; crash loop'],
  [/\banew\b/, 'again; the verb alone'],
  [/\blaid over\b/, 'merged'],
  [/\bnot begun\b/, 'unreachable; not started; in progress'],
  [/\bwith a comma\b|\bcomma between\b/, 'comma-separated'],
  [/\bwhole number\b/, 'integer'],
  [/\bas (?:it|they) should be\b/, 'unchanged, up to date'],
  [/\bstands? (?:in|beside|alone)\b/, 'is in; alone'],
  [/\bthe begin\b/, 'prefix; start'],
  [/\bto the byte\b/, 'byte-for-byte identical'],
  [/\bin the midst\b/, 'during'],
  [/\bdies of\b|\bdoes no good\b/, 'crashes, is unhealthy'],
  [/\blone\b/, 'unmatched, single'],
  [/\bis no (?:plan|duration|namespace|number|name|port|address|version)\b/, 'is not a valid'],
  [/\bcounts? for nothing\b|\bdoes not count\b/, 'is honoured, is ignored, is treated as'],
  [/\bheeds?\b|\bbe told\b|\bof their own accord\b/, 'honour, obey; expire'],
  [/\bpassing ?token|\bunforeseen|\bnamesake|\bfarewell|\binbox/, 'temporary token; random; of the same name; queue'],
  [/\bleave alone\b|\bleaves? (?:\w+ ){0,3}alone\b/, 'keep, do not change'],
];

/** The wordings that texts for users must not use. */
export const REJECTED_IDIOMS: readonly RejectedIdiom[] = IDIOMS.map(([pattern, instead]) => ({
  pattern: new RegExp(pattern.source, 'i'),
  instead,
}));

/** The rejected wordings of a text, each with the wording to use instead. */
export function rejectedIdioms(text: string): readonly string[] {
  return REJECTED_IDIOMS.flatMap(({ pattern, instead }) => {
    const match = pattern.exec(text);
    return match === null ? [] : [`"${match[0]}": write ${instead}`];
  });
}
