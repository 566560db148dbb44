import { hostCommandTooLong } from './host-problems.ts';

/** The limit of Linux for an argument with its final NUL: 32 pages (MAX_ARG_STRLEN). */
export const MAX_ARGUMENT_BYTES = 131_071;

/**
 * Rejects commands that no transport can start.
 * @throws RangeError for an empty argv or a NUL in it (a bug of the caller), AppError HOST_COMMAND_TOO_LONG
 */
export function checkArgv(argv: readonly string[], host: string): readonly [string, ...string[]] {
  const [program, ...args] = argv;
  if (!program) throw new RangeError('a command needs a program name');
  if (argv.some((word) => word.includes('\0'))) throw new RangeError(`an argument of ${program} holds a NUL character`);
  const bytes = Math.max(...argv.map((word) => Buffer.byteLength(word)));
  if (bytes > MAX_ARGUMENT_BYTES) throw hostCommandTooLong({ host, command: program, bytes, maxBytes: MAX_ARGUMENT_BYTES });
  return [program, ...args];
}
