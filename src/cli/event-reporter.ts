import type { ReportEvent, Reporter } from '../base/reporter.ts';
import { printableJson } from '../base/text/printable.ts';
import type { Services } from './output/services.ts';

/**
 * A reporter whose events are the result (`-o json` of a long-running command): one JSON object per line on
 * standard output.
 */
export function eventReporter({ clock, output }: Pick<Services, 'clock' | 'output'>, verbosity: number): Reporter {
  return {
    verbosity,
    report: ({ verbosity: desired, ...event }: ReportEvent) => {
      if ((desired ?? (event.level === 'debug' ? 2 : 0)) > verbosity) return;
      output.stdout(`${printableJson({ time: clock.now().toISOString(), ...event })}\n`);
    },
  };
}
