import { AppError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Warning } from '../../host/plan/change.ts';
import { emptyConfig, type LoadedConfig, loadConfig } from '../config/load.ts';
import type { ConfigKind } from '../config/model.ts';
import { problemAsWarning } from '../config/problem-as-warning.ts';

/** Parses the `--config` file and checks its structure; values are validated after flags are merged. */
export async function loadConfigFile(
  { input, acceptsUnknownFields = false }: Pick<LocalFiles, 'input' | 'acceptsUnknownFields'>,
  file: string | undefined,
  kinds: readonly ConfigKind[],
): Promise<LoadedConfig> {
  if (file === undefined) return emptyConfig();
  return loadConfig(await input.readText(file), file, {
    kinds,
    check: 'structure',
    ignores: acceptsUnknownFields ? 'unknown-fields' : 'metadata',
  });
}

/**
 * Throws the errors of a configuration, all at once, with exit code 2.
 * @returns its warnings
 */
export function requireValid({ problems }: LoadedConfig): readonly Warning[] {
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return problems.map(problemAsWarning);
}
