import { trimTrailing } from '../base/text/trim-trailing.ts';
import { sshConfigInvalid } from '../host/host-problems.ts';
import { type SshConfigLine, splitSshArguments } from './config.ts';

/**
 * Reads the text of an ssh_config into its lines. What an `Include` names is not read.
 * @param file its name in problems
 * @throws AppError SSH_CONFIG_INVALID at the first line that is malformed
 */
export function readSshConfigLines(text: string, file: string): readonly SshConfigLine[] {
  return text.split('\n').flatMap((line, index) => readLine(line, file, index + 1) ?? []);
}

/** `keyword arguments`, with blanks or one `=` between. */
function readLine(text: string, file: string, line: number): SshConfigLine | null {
  const trimmed = trimTrailing(text, ' \t\r\f').replace(/^[ \t]+/, '');
  if (trimmed === '' || trimmed.startsWith('#')) return null;
  const malformed = (message: string): Error =>
    sshConfigInvalid({ file, line, message, hint: 'Write a keyword and its arguments, with every quote closed' });
  const [head = '', quoted, bare] = /^(?:"([^"]*)"|([^\s="]+))[ \t]*=?[ \t]*/.exec(trimmed) ?? [];
  const keyword = (quoted ?? bare ?? '').toLowerCase();
  if (keyword === '') throw malformed('there is no keyword');
  const rest = trimmed.slice(head.length);
  // A command keeps its quotes: the shell reads them.
  const args = keyword === 'proxycommand' ? [rest].filter(Boolean) : splitSshArguments(rest);
  if (args === null) throw malformed('a quote is not closed');
  if (args.length === 0) throw malformed(`${keyword} has no argument`);
  return { file, line, keyword, args };
}
