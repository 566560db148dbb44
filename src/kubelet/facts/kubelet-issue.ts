/** What a kubelet that runs says it cannot do at the API server: as structured logs have it, and in the form before kubelet 1.21. */
const FAILURES: readonly { readonly after: RegExp; readonly error: RegExp }[] = [
  {
    after: /Failed while requesting a signed certificate from the (?:control plane|master)/,
    error: /^(?:" err="((?:[^"\\]|\\.)*)"|: (.+)$)/,
  },
  {
    after: /Unable to register node/,
    error: /^(?: "[^"]*")? with API server[^":]*(?:" err="((?:[^"\\]|\\.)*)"|: (.+)$)/,
  },
];
const LONGEST = 300;

/**
 * What keeps a kubelet from getting its certificate or its Node, in its own words: the last it said of either.
 * @param journal lines of `journalctl -u kubelet -o cat`, oldest first
 * @returns null when it said nothing of that kind
 */
export function kubeletIssue(journal: string): string | null {
  for (const line of journal.split('\n').reverse()) {
    for (const { after, error } of FAILURES) {
      const found = after.exec(line);
      const match = found === null ? null : error.exec(line.slice(found.index + found[0].length));
      if (match !== null) return shorten(match[1] === undefined ? (match[2] ?? '') : match[1].replace(/\\(["\\])/g, '$1'));
    }
  }
  return null;
}

/** It may quote what a server answered: one line of it, and nothing a terminal obeys. */
function shorten(text: string): string {
  const line = text.replace(/\p{Cc}+/gu, ' ').trim();
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST)}...`;
}
