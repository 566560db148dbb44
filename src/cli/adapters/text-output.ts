import { escapeUnprintable } from '../../base/text/printable.ts';
import { joinLines, renderText } from '../../base/text/styled.ts';
import { lineWidth } from '../../base/text/wrap-line.ts';
import { wrapStyled } from '../../base/text/wrap-styled.ts';
import type { ColourChoice, Output, RawOutput } from '../output/services.ts';

/**
 * Whether a stream has colours by default: FORCE_COLOR, then NO_COLOR, then a terminal.
 * @see https://no-color.org, https://force-color.org: an empty value counts as not set
 */
export function usesColour(env: Readonly<Record<string, string | undefined>>, stream: { readonly isTTY?: boolean }): boolean {
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false';
  return !env.NO_COLOR && stream.isTTY === true && env.TERM !== 'dumb';
}

/**
 * The only place that writes text to a terminal. Control characters are escaped here, because the text may
 * contain output of hosts, Nodes and API servers. Style codes are added after the escaping.
 * @param colours whether standard output and standard error have colours, without `--color`
 * @param isTerminal whether standard output is a terminal. Documents are escaped only on a terminal: a file
 * or a pipe receives them byte for byte
 */
export function textOutput(
  raw: RawOutput,
  { colours, isTerminal }: { readonly colours: { readonly stdout: boolean; readonly stderr: boolean }; readonly isTerminal: boolean },
): Output {
  const { status, width } = raw;
  let chosen: ColourChoice = 'auto';
  const colour = (stream: 'stdout' | 'stderr'): boolean => (chosen === 'auto' ? colours[stream] : chosen === 'always');
  return {
    setColour: (when) => {
      chosen = when;
    },
    stdout: (text) => raw.stdout(renderText(text, colour('stdout'))),
    stderr: (text) => raw.stderr(renderText(text, colour('stderr'))),
    prose: (text) => raw.stdout(renderText(isTerminal ? wrapStyled(text, lineWidth({ width })) : text, colour('stdout'))),
    document: (text) => raw.stdout(isTerminal ? escapeUnprintable(text) : text),
    width,
    ...(status === undefined
      ? {}
      : {
          status: (display) =>
            status(display === null ? null : (size) => renderText(joinLines(display(size)), colour('stderr')).replace(/\n$/, '')),
        }),
  };
}
