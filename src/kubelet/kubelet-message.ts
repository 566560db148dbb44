import type { PhaseContext } from '../host/phase.ts';
import { kubeletIssue } from './facts/kubelet-issue.ts';

const JOURNAL_LINES = 300;
/** The kubelet was started shortly before the wait. */
const START_SECONDS = 5;

/**
 * The kubelet's latest error about its registration since the wait began; null without such an error or without a
 * journal.
 */
export async function kubeletMessage({ host, signal }: PhaseContext, waitedMs: number): Promise<string | null> {
  const since = `--since=-${Math.ceil(waitedMs / 1000) + START_SECONDS}s`;
  const argv = ['journalctl', '--unit=kubelet', since, `--lines=${JOURNAL_LINES}`, '--output=cat', '--no-pager', '--boot'];
  const { journal } = await host.query({ journal: { kind: 'command', argv } }, { signal });
  return journal.exitCode === 0 ? kubeletIssue(journal.stdout) : null;
}
