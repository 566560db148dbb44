import { AppError } from '../../base/errors.ts';
import { parseUnitFile, type UnitDirective } from '../../host/systemd/unit-file.ts';
import { readFlagsEnv } from '../../kubelet/flags-env.ts';

/**
 * Parses kubeadm-flags.env as systemd does: each flag must become one word.
 * @throws AppError RENDER_CHECK_FAILED: the file would have another meaning
 */
export function checkFlagsEnv(path: string, text: string, flagNames: readonly string[]): void {
  const words = readFlagsEnv(text);
  if (words.length !== flagNames.length || !flagNames.every((name, i) => words[i]?.startsWith(`--${name}=`)))
    throw checkFailed(path, `parsed as ${words.length} words`);
}

/** Parses a unit file: the required directives must exist in this order. */
export function checkUnitFile(path: string, text: string, desired: readonly Pick<UnitDirective, 'name' | 'value'>[]): void {
  const found = parseUnitFile(text).filter((directive) => desired.some((one) => one.name === directive.name));
  const same = found.length === desired.length && desired.every((one, i) => found[i]?.name === one.name && found[i]?.value === one.value);
  if (!same) throw checkFailed(path, 'the parsed directives differ');
}

function checkFailed(path: string, why: string): AppError {
  return new AppError({
    code: 'RENDER_CHECK_FAILED',
    message: `internal error: ${path} was rendered incorrectly: ${why}`,
    hint: 'Nothing was written. Please report this bug',
  });
}
