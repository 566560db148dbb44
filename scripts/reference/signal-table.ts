import { SIGNALS, type SignalLimit, type SignalRow } from '../../src/kubelet/health/signals.ts';

const [BEGIN, END] = ['<!-- signals: made by npm run reference -->', '<!-- end of signals -->'];

/** The text of docs/health.md with the table of signals in it. */
export function withSignalTable(page: string): string {
  const [before, after] = [page.split(BEGIN)[0], page.split(END)[1]];
  return `${before}${BEGIN}\n\n${signalTable()}\n\n${END}${after}`;
}

function signalTable(): string {
  const rows = Object.entries<SignalRow>(SIGNALS).map(([name, { observation, source, limits }]) => {
    const [agent, ssh] = [limitText(limits.agent), limitText(limits.ssh)];
    return `| \`${name}\` | ${observation} | ${source} | ${agent === ssh ? agent : `agent: ${agent}. SSH: ${ssh}`} |`;
  });
  return ['| Signal | Observation | Source | Fails after |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

function limitText(limit: SignalLimit): string {
  if ('until' in limit) return limit.until;
  if ('notChecked' in limit) return `not checked, because ${limit.notChecked}`;
  const seconds = limit.ms / 1000;
  return limit.shown ?? (seconds >= 300 ? `${seconds / 60} min` : `${seconds} s`);
}
