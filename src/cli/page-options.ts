import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import type { CommandOptions } from './command.ts';
import { addOptionGroup, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import type { PageRequest } from './report/run-page.ts';

const LOOPBACK = '127.0.0.1';

/** The values of `--report` and `--serve`. */
export type PageFlags = Pick<PageRequest, 'report' | 'serve'>;

/** `--report`. */
export function addReport(command: Command): Command {
  return addOptionGroup(command, HEADINGS.output, (output) =>
    output.option('--report <file>', 'self-contained HTML report to write when the command ends, even if the command fails'),
  );
}

/** `--report` and `--serve`: for commands that change many hosts. */
export function addPageOptions(command: Command): Command {
  return addOptionGroup(addReport(command), HEADINGS.output, (output) =>
    output.addOption(
      new Option(
        '--serve [address:port]',
        'serve the HTML report as a live page while the command runs, and print its URL; an address is written as --serve=ADDRESS:PORT (default: 127.0.0.1 and a free port)',
      ).preset(`${LOOPBACK}:0`),
    ),
  );
}

/** @throws AppError USAGE (exit code 2) for an invalid address */
export function pageFlags(options: CommandOptions): PageFlags {
  return { report: flagText(options, 'report'), serve: serveAddress(flagText(options, 'serve')) };
}

/** `127.0.0.1:8080`, `[::1]:8080`, `8080`, `:8080`, `10.0.0.5`. */
function serveAddress(text: string | undefined): PageFlags['serve'] {
  if (text === undefined) return undefined;
  const [, six, host, port] =
    /^(?:(?:\[([0-9a-f:.]+)\]|([^:\s/[\]]*))(?::(\d{1,5}))?)$/i.exec(/^\d+$/.test(text) ? `:${text}` : text) ?? [];
  const number = Number(port ?? 0);
  if ((six === undefined && host === undefined) || text === '' || number > 65_535)
    throw usageError(
      `--serve ${JSON.stringify(text)} is not an address and port`,
      'Use an address and port such as --serve=127.0.0.1:8080, or --serve alone for a free port',
    );
  return { host: six ?? (host || LOOPBACK), port: number };
}
