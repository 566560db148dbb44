import { type AppError, problemText } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';

/** Reports each problem of an error as a warning, with its hint. @param of e.g. `{ subject: 'KubeletConfigRollout edge: ' }` */
export function reportError(reporter: Reporter, error: AppError, { host = '', subject = '' } = {}): void {
  for (const { host: own, ...problem } of error.problems)
    reporter.report({
      level: 'warning',
      code: problem.code,
      message: `${subject}${problemText(problem)}`,
      ...(own || host ? { host: own ?? host } : {}),
    });
}
