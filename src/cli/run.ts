import type { ExitCode } from '../base/errors.ts';
import { COMMANDS } from './commands.ts';
import type { Services } from './output/services.ts';
import { runCommands } from './run-commands.ts';

/**
 * Runs one command line of the whole program.
 * @param argv without the interpreter and the script
 * @returns the exit code; errors were printed on stderr
 */
export function runCli(argv: readonly string[], services: Services, version: string): Promise<ExitCode> {
  const loadComplete = async () => (await import('./complete.ts')).runComplete;
  const loadPhases = async () => (await import('../kubeadm/workflows/phase-lists.ts')).PHASE_LISTS;
  return runCommands({ argv, services, version, commands: COMMANDS, loadComplete, loadPhases });
}
