import type { Problem } from '../../base/errors.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { CheckName } from '../config/check-names.ts';

/** The result of a failed preflight check. `id` is kubeadm's where kubeadm has the check. */
export interface Finding {
  readonly id: CheckName;
  readonly severity: 'error' | 'warning';
  readonly message: string;
  readonly hint?: string | undefined;
}

export type Check<I> = (input: I) => readonly (Finding | null)[];

export function runChecks<I>(checks: readonly Check<I>[], input: I): readonly Finding[] {
  return checks.flatMap((check) => check(input)).filter((finding) => finding !== null);
}

export function error(id: CheckName, message: string, hint?: string): Finding {
  return { id, severity: 'error', message, hint };
}

export function warning(id: CheckName, message: string): Finding {
  return { id, severity: 'warning', message };
}

export type PreflightVerdict = ReturnType<typeof validateFindings>;

/**
 * Sorts findings into errors and warnings; an ignored error becomes a warning. Ids are case-insensitive;
 * `all` ignores all errors.
 * @param ignores the settings of the run and, for a node, its registration
 * @param host the prefix of each message
 * @returns `errors`: not empty, the host must not be changed
 * @see kubeadm 1.36 preflight.RunChecks
 */
export function validateFindings(findings: readonly Finding[], ignores: IgnoredChecks, host: string) {
  const isError = (finding: Finding): boolean => finding.severity === 'error' && !isIgnored(finding.id, ignores);
  const problems = findings.filter(isError).map(({ id, message, hint }): Problem => {
    const route = `${hint === undefined ? '' : `${hint}. `}To continue anyway, use --ignore-preflight-errors=${id}`;
    return { host, code: id, message: `preflight: ${message}`, hint: route };
  });
  return { errors: problems, warnings: findings.filter((finding) => !isError(finding)) };
}

/** The settings that name the ignored checks. */
export type IgnoredChecks = readonly Pick<RunSettings, 'ignorePreflightErrors'>[];

/** Whether one of the settings names a check, or all of them. */
export function isIgnored(id: string, ignores: IgnoredChecks): boolean {
  const names = ignores.flatMap(({ ignorePreflightErrors }) => ignorePreflightErrors);
  return names.some((each) => each.toLowerCase() === 'all' || each.toLowerCase() === id.toLowerCase());
}
