import { usageError } from '../base/errors.ts';
import type { ListenAddress } from '../base/local-server.ts';
import type { CommandOptions } from './command.ts';
import { flagText } from './option-values.ts';

export const LISTEN_HELP = 'address to serve /metrics, /healthz and /readyz on; an empty value disables them';

/**
 * `--listen`; null: disabled.
 * @param example for the hint
 * @throws AppError USAGE (exit code 2)
 */
export function listenAddress(options: CommandOptions, example: string): ListenAddress | null {
  const text = flagText(options, 'listen') ?? '';
  if (text === '') return null;
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:\s]+)):(\d{1,5})$/i.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535)
    throw usageError(`--listen ${JSON.stringify(text)} is not an address and port`, `Use an address and port such as ${example}`);
  return { host: (match[1] ?? match[2]) as string, port };
}
