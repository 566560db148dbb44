import { printableJson } from '../core/text/printable.ts';
import type { Clock } from '../ports/clock.ts';
import type { Reporter } from '../ports/reporter.ts';
import type { Output } from '../ports/services.ts';

/** One JSON object a line, on stderr: `{ time, level, code, host?, phase?, message, data? }`. */
export function jsonReporter(output: Pick<Output, 'stderr'>, clock: Clock, verbosity: number): Reporter {
  return {
    verbosity,
    report: ({ verbosity: wanted, ...event }) => {
      if ((wanted ?? (event.level === 'debug' ? 2 : 0)) > verbosity) return;
      output.stderr(`${printableJson({ time: clock.now().toISOString(), ...event })}\n`);
    },
  };
}
