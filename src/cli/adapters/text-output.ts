import { visible } from '../../base/text/printable.ts';
import { renderText } from '../../base/text/styled.ts';
import type { Output, RawOutput } from '../services.ts';

/**
 * The one place where text meets a terminal: control characters of what is printed, which may come from hosts, Nodes and API servers, are escaped here, and
 * the codes of styles are added after that.
 * @param isTerminal whether standard output is one. Documents are escaped only there: in a file or a pipe they are kept byte for byte
 */
export function textOutput(raw: RawOutput, { colour, isTerminal }: { readonly colour: boolean; readonly isTerminal: boolean }): Output {
  const { status } = raw;
  return {
    stdout: (text) => raw.stdout(renderText(text, colour)),
    stderr: (text) => raw.stderr(renderText(text, colour)),
    document: (text) => raw.stdout(isTerminal ? visible(text) : text),
    ...(status === undefined ? {} : { status }),
  };
}
