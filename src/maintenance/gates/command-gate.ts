import type { GateAnswer } from './batch-gates.ts';
import type { Attempt, GatePorts } from './gate-ports.ts';

/** Runs the command in the directory of its file, with its whole output on stderr, and prints its exit code. */
const RUN = 'cd "$1" || exit 1; shift; "$@" >&2; echo "$?"';

/**
 * Runs a command on the local host with what just happened in its environment. It passes with exit code 0.
 * @throws AppError HOST_TIMEOUT, HOST_OUTPUT_TOO_LARGE, LOCAL_COMMAND_FAILED: the directory does not exist
 */
export async function commandGate(
  { runLocal }: Pick<GatePorts, 'runLocal'>,
  command: readonly string[],
  { gate, batch, timeoutMs }: Attempt,
): Promise<GateAnswer> {
  const environment = {
    KUBELETADM_GATE: gate.name,
    KUBELETADM_BATCH: batch.number,
    KUBELETADM_CANARY: batch.isCanary,
    KUBELETADM_LAST: batch.isLast,
    KUBELETADM_HOSTS: batch.names.join(' '),
  };
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  let output = '';
  const onStderr = (text: string): void => {
    output = tailOf(text);
  };
  const printed = await runLocal(['sh', '-c', RUN, 'sh', gate.directory, 'env', ...variables, ...command], { timeoutMs, onStderr });
  const exitCode = Number(printed.trim());
  return { isPassed: exitCode === 0, answer: `exit code ${exitCode}`, ...(output === '' ? {} : { output }) };
}

const MOST_LINES = 20;
const MOST_CHARACTERS = 4096;

/** The last lines of an output. */
function tailOf(text: string): string {
  return text.trimEnd().split('\n').slice(-MOST_LINES).join('\n').slice(-MOST_CHARACTERS);
}
