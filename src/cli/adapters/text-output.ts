import { escapeUnprintable } from '../../base/text/printable.ts';
import { joinLines, renderText } from '../../base/text/styled.ts';
import type { Output, RawOutput } from '../output/services.ts';

/**
 * The only place that writes text to a terminal. Control characters are escaped here, because the text may
 * contain output of hosts, Nodes and API servers. Style codes are added after the escaping.
 * @param isTerminal whether standard output is a terminal. Documents are escaped only on a terminal: a file
 * or a pipe receives them byte for byte
 */
export function textOutput(raw: RawOutput, { colour, isTerminal }: { readonly colour: boolean; readonly isTerminal: boolean }): Output {
  const { status, width } = raw;
  return {
    stdout: (text) => raw.stdout(renderText(text, colour)),
    stderr: (text) => raw.stderr(renderText(text, colour)),
    document: (text) => raw.stdout(isTerminal ? escapeUnprintable(text) : text),
    width,
    ...(status === undefined
      ? {}
      : {
          status: (display) => status(display === null ? null : (size) => renderText(joinLines(display(size)), colour).replace(/\n$/, '')),
        }),
  };
}
