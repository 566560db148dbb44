import { trimTrailing } from '../base/text/trim-trailing.ts';
import { sshConfigInvalid } from '../host/host-problems.ts';
import { type SshConfigLine, splitSshArguments } from './config.ts';

/**
 * Splits the text of an ssh_config into lines. Files of `Include` are not read.
 * @param file its name in messages
 * @throws AppError SSH_CONFIG_INVALID at the first malformed line
 */
export function readSshConfigLines(text: string, file: string): readonly SshConfigLine[] {
  return text.split('\n').flatMap((line, index) => readLine(line, file, index + 1) ?? []);
}

/** `keyword arguments`, separated by whitespace or one `=`. */
function readLine(text: string, file: string, line: number): SshConfigLine | null {
  const trimmed = trimTrailing(text, ' \t\r\f').replace(/^[ \t]+/, '');
  if (trimmed === '' || trimmed.startsWith('#')) return null;
  const malformed = (message: string): Error =>
    sshConfigInvalid({ file, line, message, hint: 'Write a keyword followed by its arguments, with balanced quotes' });
  const [head = '', quoted, bare] = /^(?:"([^"]*)"|([^\s="]+))[ \t]*=?[ \t]*/.exec(trimmed) ?? [];
  const keyword = (quoted ?? bare ?? '').toLowerCase();
  if (keyword === '') throw malformed('missing keyword');
  const rest = trimmed.slice(head.length);
  // A command keeps its quotes for the shell.
  const args = keyword === 'proxycommand' ? [rest].filter(Boolean) : splitSshArguments(rest);
  if (args === null) throw malformed('unclosed quote');
  if (args.length === 0) throw malformed(`${keyword} has no argument`);
  return { file, line, keyword, args };
}
