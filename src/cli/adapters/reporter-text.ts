import type { Clock } from '../../base/clock.ts';
import type { ReportEvent, Reporter } from '../../base/reporter.ts';
import { printableJson } from '../../base/text/printable.ts';
import { styled, type Text } from '../../base/text/styled.ts';
import type { Output } from '../output/services.ts';

/** One plain line an event, on stderr: `host [phase] message`. */
export function textReporter(output: Pick<Output, 'stderr'>, verbosity: number): Reporter {
  return {
    verbosity,
    report: (event) => {
      if ((event.verbosity ?? (event.level === 'debug' ? 2 : 0)) > verbosity) return;
      output.stderr(formatEvent(event));
    },
  };
}

function formatEvent(event: ReportEvent): Text {
  const host = event.host === undefined || event.host === 'localhost' ? '' : `${event.host} `;
  const phase = event.phase === undefined ? [] : [styled('cyan', `[${event.phase}] `)];
  const level = event.level === 'warning' ? [styled('yellow', 'warning: ')] : event.level === 'error' ? [styled('red', 'error: ')] : [];
  const code = event.level === 'warning' ? ` [${event.code}]` : '';
  // A newline in a message must not look like the start of another event.
  return [host, ...phase, ...level, `${event.message.replaceAll('\n', '\n  ')}${code}\n`];
}

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
