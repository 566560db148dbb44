import { AppError } from '../base/errors.ts';
import { MARKS_NAMESPACE } from './node-marks-record.ts';

export interface MarksLeft {
  readonly nodeName: string;
  /** Labels and taints that the Node lacks or still has to lose, in words; null: only their record is missing. */
  readonly left: string | null;
}

/**
 * The error of a run that changed a host and could not finish the labels and taints of its Node, or their record.
 * @param error what the API server answered: its code and its cause are kept
 * @returns what was done, what is left and why; the hint names the rights that are required where they are missing (CLUSTER_FORBIDDEN)
 */
export function nodeMarksIncomplete(error: AppError, { nodeName, left }: MarksLeft): AppError {
  const done =
    left === null
      ? `Node ${nodeName} has its labels and taints, but their record in namespace ${MARKS_NAMESPACE} is not up to date`
      : `Node ${nodeName} is not labelled and tainted as declared (left: ${left})`;
  const problems = error.problems.map((problem) => {
    const hint = problem.code === 'CLUSTER_FORBIDDEN' ? RIGHTS : (problem.hint ?? `Fix the cause, then ${RERUN}`);
    return { ...problem, message: `${done}: ${problem.message}. The changes of earlier phases are kept`, hint };
  });
  return new AppError(problems, {
    exitCode: error.exitCode,
    cause: error,
    ...(error.detail === undefined ? {} : { detail: error.detail }),
  });
}

const RERUN = 'run the same command again: it applies only what is left';
const RIGHTS = `Use credentials that may get and patch Nodes, get, create and update ConfigMaps in namespace ${MARKS_NAMESPACE}, and get and create that Namespace; then ${RERUN}`;
