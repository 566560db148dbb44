import type { Clock } from '../../base/clock.ts';
import type { ReportEvent, Reporter } from '../../base/reporter.ts';
import { printableJson } from '../../base/text/printable.ts';
import { styled, type Text } from '../../base/text/styled.ts';
import { lineWidth, wrapLine } from '../../base/text/wrap-line.ts';
import type { Output } from './services.ts';

/** One plain line an event, on stderr: `host [phase] message`; a terminal receives long messages on several lines. */
export function textReporter(output: Pick<Output, 'stderr' | 'width'>, verbosity: number): Reporter {
  return {
    verbosity,
    report: (event) => {
      if ((event.verbosity ?? (event.level === 'debug' ? 2 : 0)) > verbosity) return;
      output.stderr(formatEvent(event, lineWidth(output)));
    },
  };
}

function formatEvent(event: ReportEvent, width: number | undefined): Text {
  const host = event.host === undefined || event.host === 'localhost' ? '' : `${event.host} `;
  const phase = event.phase === undefined ? [] : [styled('cyan', `[${event.phase}] `)];
  const level = event.level === 'warning' ? [styled('yellow', 'warning: ')] : event.level === 'error' ? [styled('red', 'error: ')] : [];
  const code = event.level === 'warning' ? ` [${event.code}]` : '';
  const before = host.length + [...phase, ...level].reduce((sum, { text }) => sum + text.length, 0);
  const isLine = !event.message.includes('\n');
  // A newline in a message must not look like the start of another event.
  const text = isLine ? wrapLine(event.message + code, { width, before }) : event.message.replaceAll('\n', '\n  ') + code;
  const changed = event.code === 'HOST_CHANGED' ? CHANGED.exec(text) : null;
  const at = changed === null ? 0 : changed[0].length - 'changed'.length;
  const shown = changed === null ? [text] : [text.slice(0, at), styled('green', 'changed'), text.slice(changed[0].length)];
  return [host, ...phase, ...level, ...shown, '\n'];
}

/** The state at the beginning of a result: `changed`, `(7 hosts) changed`. */
const CHANGED = /^(?:\(\d{1,9} [a-z]{1,9}\) )?changed/;

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
