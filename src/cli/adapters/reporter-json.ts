import type { Clock } from '../../base/clock.ts';
import type { Reporter } from '../../base/reporter.ts';
import { printableJson } from '../../base/text/printable.ts';
import type { Output } from '../services.ts';

/** One JSON object a line, on stderr: `{ time, level, code, host?, phase?, message, data? }`. */
export function jsonReporter(output: Pick<Output, 'stderr'>, clock: Clock, verbosity: number): Reporter {
  return {
    verbosity,
    report: ({ verbosity: desired, ...event }) => {
      if ((desired ?? (event.level === 'debug' ? 2 : 0)) > verbosity) return;
      output.stderr(`${printableJson({ time: clock.now().toISOString(), ...event })}\n`);
    },
  };
}
