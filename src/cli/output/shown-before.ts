import type { ReportEvent, Reporter } from '../../base/reporter.ts';

/** The warnings and the cluster that were shown while the hosts were planned: the run does not repeat them. */
export function shownBefore() {
  const keys = new Set<string>();
  const keyOf = ({ host, phase, code, message }: ReportEvent): string => [host, phase, code, message].join('\0');
  const isShownOnce = ({ level, code }: ReportEvent): boolean => level === 'warning' || code === 'CLUSTER';
  return {
    record: (reporter: Reporter): Reporter => ({
      ...reporter,
      report: (event) => {
        if (isShownOnce(event)) keys.add(keyOf(event));
        reporter.report(event);
      },
    }),
    omit: (reporter: Reporter): Reporter => ({
      ...reporter,
      report: (event) => {
        if (!isShownOnce(event) || !keys.has(keyOf(event))) reporter.report(event);
      },
    }),
  };
}
