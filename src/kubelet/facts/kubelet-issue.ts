import { readJournal } from '../../host/access/journal.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { shortened } from './kubelet-failure.ts';

/** Errors of a running kubelet about the API server: in structured logs, and in the format before kubelet 1.21. */
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
 * The last error of a kubelet about its client certificate or its Node registration.
 * @param journal lines of `journalctl -u kubelet -o cat`, oldest first
 * @returns null without such an error
 */
export function kubeletIssue(journal: string): string | null {
  for (const line of journal.split('\n').reverse()) {
    for (const { after, error } of FAILURES) {
      const found = after.exec(line);
      const match = found === null ? null : error.exec(line.slice(found.index + found[0].length));
      if (match !== null) return oneLine(match[1] === undefined ? (match[2] ?? '') : match[1].replace(/\\(["\\])/g, '$1'));
    }
  }
  return null;
}

/** The message may quote a server response: keep one line without control characters. */
function oneLine(text: string): string {
  return shortened(text.replace(/\p{Cc}+/gu, ' ').trim(), LONGEST);
}

const JOURNAL_LINES = 300;
/** The kubelet was started shortly before the wait. */
const START_SECONDS = 5;

/**
 * The kubelet's latest error about its registration since the wait began; null without such an error or without a
 * journal.
 */
export async function kubeletMessage({ host, signal }: PhaseContext, waitedMs: number): Promise<string | null> {
  const since = `-${Math.ceil(waitedMs / 1000) + START_SECONDS}s`;
  const journal = await readJournal(host, { unit: 'kubelet', since, lines: JOURNAL_LINES, bootOnly: true }, signal);
  return journal === null ? null : kubeletIssue(journal);
}
