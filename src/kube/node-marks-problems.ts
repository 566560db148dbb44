import { AppError } from '../base/errors.ts';
import { MARKS_NAMESPACE } from './node-marks-record.ts';

export interface MarksLeft {
  readonly nodeName: string;
  /**
   * Labels and taints that are still to be added or removed, as text; null: only their record is outdated.
   */
  readonly left: string | null;
}

/**
 * The error of a run that changed a host but could not finish the labels and taints of its Node, or their
 * record.
 * @param error the API server's error: its code and its cause are kept
 * @returns the finished part, the remaining part and the reason; for CLUSTER_FORBIDDEN the hint names the
 *   required permissions
 */
export function nodeMarksIncomplete(error: AppError, { nodeName, left }: MarksLeft): AppError {
  const done =
    left === null
      ? `Node ${nodeName} has the declared labels and taints, but their record in namespace ${MARKS_NAMESPACE} is not up to date`
      : `Node ${nodeName} does not have the declared labels and taints yet (remaining: ${left})`;
  const problems = error.problems.map((problem) => {
    const hint = problem.code === 'CLUSTER_FORBIDDEN' ? RIGHTS : (problem.hint ?? `Fix the cause, then ${RERUN}`);
    return { ...problem, message: `${done}: ${problem.message}. The changes of earlier phases are kept`, hint };
  });
  return new AppError(problems, {
    exitCode: error.exitCode,
    cause: error,
    detail: error.detail,
  });
}

const RERUN = 'rerun the same command: it applies only the remaining changes';
const RIGHTS = `Use credentials with these permissions: get and patch Nodes; get, create and update ConfigMaps in namespace ${MARKS_NAMESPACE}; get and create this Namespace. Then ${RERUN}`;
