import { migrateConfig } from '../core/config/migrate.ts';
import { AppError, type ExitCode, formatProblem } from '../core/errors.ts';
import type { Services } from '../ports/services.ts';
import type { CommandOptions } from './program.ts';
import { flagText } from './read-options.ts';

/** `config migrate --old-config FILE [--new-config FILE]`. */
export async function runMigrate(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const file = flagText(options, 'oldConfig') ?? '-';
  const { output, problems } = migrateConfig(await services.input.readText(file), file);
  if (output === null) throw new AppError(problems, { exitCode: 2 });
  for (const problem of problems) services.output.stderr(`${formatProblem(problem)}\n`);
  const target = flagText(options, 'newConfig');
  if (target === undefined) services.output.stdout(output.reveal());
  else await services.writeLocalFile(target, output.reveal());
  return 0;
}
