/** A wording that texts must not use, with the wording to use instead. */
export interface RejectedIdiom {
  readonly pattern: RegExp;
  readonly instead: string;
}

/** Add an idiom: `[pattern, wording to use instead]`. Patterns ignore case. */
const IDIOMS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b(?:this|the) machines?\b(?!-id)/, 'the local host; host'],
  [/\btold\b|\btells\b|\btelling\b|\bhears?\b|\bheard\b/, 'reported, shown, printed, logged'],
  [/\bsays?\b|\bsaid\b/, 'show, print; is configured, declares'],
  [/(?<!\banyone )\bwho\b|\bwhom\b/, 'the actor: an administrator, a process that'],
  [/\b(?:whoever|whosever|whatever|nobody|somebody)\b/, 'the actor or the object'],
  [/\bwhat (?:is|are|it|they|to)\b|^what\b/, 'a noun'],
  [/\bthere\b/, 'exists; existing; on the host'],
  [/\bmend(?:s|ed|ing)?\b/, 'fix; hint'],
  [/\bjudg(?:e|es|ed|ing|ement)\b/, 'validate'],
  [/\bfor ever\b/, 'never expires; crash loop'],
  [/\banew\b/, 'again; the verb alone'],
  [/\bby itself\b/, 'automatically'],
  [/\bgo(?:es)? back\b|\bwent back\b|\btak(?:e|es|en) back\b/, 'roll back; return to'],
  [/\bgo(?:es)? on\b/, 'continue; keep'],
  [/\btak(?:e|es|en|ing) (?:off|away|out)\b/, 'remove'],
  [/\bput(?:s)? there\b/, 'install, write'],
  [/\bcome(?:s)? to\b|\bcome(?:s)? from\b|\bbecomes of\b/, 'the result; the source'],
  [/(?<!-)\bbesides?\b/, 'in addition to; next to'],
  [/\bso many\b/, 'number or percentage of'],
  [/\blook(?:s|ed|ing)? at\b/, 'inspect, check, show'],
  [/(?<!-)\bauthorit(?:y|ies)\b/, 'CA, CAs'],
  [/\bmake a\b/, 'create, generate, bootstrap'],
  [/\blaid over\b/, 'merged'],
  [/\bworks? on (?:this|the|a) host\b|\bworked on\b/, 'process; hold the lock on'],
  [/\bnot reached\b|\bnot begun\b|\bunder way\b/, 'unreachable; not started; in progress'],
  [/\bwith a comma\b|\bcomma between\b/, 'comma-separated'],
  [/\bwhole number\b/, 'integer'],
  [/\bas (?:it|they) should be\b/, 'unchanged, up to date'],
  [/\bstands? (?:in|beside|alone)\b/, 'is in; alone'],
  [/\bthe begin\b/, 'prefix; start'],
  [/\btroubles?\b/, 'error, issue, reason'],
  [/\bbecome root\b/, 'privilege escalation (sudo)'],
  [/\bleaves? with \d|\bends? with \d/, 'exits with code'],
  [/\bto the byte\b/, 'byte-for-byte identical'],
  [/\bin the midst\b/, 'during'],
  [/\bdies of\b|\bdoes no good\b/, 'crashes, is unhealthy'],
  [/\bfell[- ]back\b/, 'rolled back; rejected'],
  [/\bto (?:its|their) end\b/, 'finish'],
  [/\blone\b/, 'unmatched, single'],
  [/\bfrom before\b|\bwas there before\b/, 'previous'],
  [/\bis no (?:plan|duration|namespace|number|name|port|address|version)\b/, 'is not a valid'],
  [/\bcounts? for nothing\b|\bdoes not count\b/, 'is honoured, is ignored, is treated as'],
  [/\bheeds?\b|\bbe told\b|\bis due\b|\bof their own accord\b/, 'honour, obey; expire'],
  [/\bpassing ?token|\bunforeseen|\bnamesake|\bfarewell|\binbox/, 'temporary token; random; of the same name; queue'],
  [/\bcarry ?out|\bsettle ?(?:cluster|version|token|mount|node)/, 'execute; resolve'],
  [/\bbeside ?(?:fleet|kubeconfig|file)|\bleft ?out\b/, 'next to, in the directory of; skipped, excluded, not set'],
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
