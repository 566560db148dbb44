import { visible } from '../core/text/printable.ts';
import type { ReportEvent, Reporter } from '../ports/reporter.ts';
import type { Output } from '../ports/services.ts';

/** One plain line an event, on stderr: `host [phase] message`. Control characters of a host's words are made visible. */
export function textReporter(output: Pick<Output, 'stderr' | 'colour'>, verbosity: number): Reporter {
  return {
    verbosity,
    report: (event) => {
      if ((event.verbosity ?? (event.level === 'debug' ? 2 : 0)) > verbosity) return;
      output.stderr(`${formatEvent(event, output.colour)}\n`);
    },
  };
}

function formatEvent(event: ReportEvent, colour: boolean): string {
  const phase = event.phase === undefined ? '' : paint(`[${event.phase}] `, '36', colour);
  const host = event.host === undefined || event.host === 'localhost' ? '' : `${event.host} `;
  const level =
    event.level === 'warning' ? paint('warning: ', '33', colour) : event.level === 'error' ? paint('error: ', '31', colour) : '';
  const code = event.level === 'warning' ? ` [${event.code}]` : '';
  return visible(`${host}`) + phase + level + visible(event.message) + code;
}

function paint(text: string, code: string, colour: boolean): string {
  return colour ? `\u001b[${code}m${text}\u001b[0m` : text;
}
