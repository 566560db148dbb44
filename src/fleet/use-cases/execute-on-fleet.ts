import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { CommandFact } from '../../host/facts/query.ts';
import type { ResolvedHost } from '../file/model.ts';
import { selectHosts } from '../file/select.ts';
import type { HostTarget } from '../host-target.ts';
import { type NodeCommandPorts, onHost } from '../ports.ts';
import type { FleetHostsRequest } from './fleet-request.ts';
import { fleetTargets } from './host-access.ts';
import { readFleet, refuseDuplicateMachines } from './load-fleet.ts';

export interface ExecuteRequest extends FleetHostsRequest {
  readonly argv: readonly string[];
  readonly parallel: number;
  readonly timeoutMs: number;
}

export interface ExecutedCommand {
  readonly host: string;
  /** Null: the command was not executed. */
  readonly result: CommandFact | null;
  /** The problems of a command that was not executed. */
  readonly problems: readonly Problem[];
}

/**
 * Runs a command as root on the selected hosts. A single argument is a shell command line, as with ssh.
 * @param ended receives the result of each host when the host is done, and the number of hosts
 * @returns the failure, with exit code 4 when the command succeeded on some hosts; null: the command succeeded on all
 * @throws AppError with exit code 2 for an invalid file or selection; the reason of an interruption
 */
export async function executeOnFleet(
  services: NodeCommandPorts,
  request: ExecuteRequest,
  ended: (executed: ExecutedCommand, progress: { readonly done: number; readonly total: number }) => void,
): Promise<AppError | null> {
  const { argv, parallel, timeoutMs } = request;
  const fleet = await readFleet(services, request);
  const hosts = selectHosts(fleet.hosts, request.selection);
  await refuseDuplicateMachines(services, { ...fleet, hosts }, request.connection.configFile);
  const targetOf = await fleetTargets(services, request.connection, fleet.file);
  let done = 0;
  const executed = await inParallel(hosts, parallel, async (host) => {
    const one = await execute(services, targetOf(host), host, { argv, timeoutMs });
    done++;
    ended(one, { done, total: hosts.length });
    return one;
  });
  if (services.signal.aborted && isAppError(services.signal.reason)) throw services.signal.reason;
  const failed = executed.filter(({ result }) => result?.exitCode !== 0);
  if (failed.length === 0) return null;
  return new AppError(failed.flatMap(problemsOf), { exitCode: failed.length === executed.length ? 1 : 4 });
}

async function execute(
  services: NodeCommandPorts,
  target: HostTarget,
  { name }: ResolvedHost,
  { argv, timeoutMs }: { readonly argv: readonly string[]; readonly timeoutMs: number },
): Promise<ExecutedCommand> {
  try {
    services.signal.throwIfAborted();
    return await onHost(services, target, async (host) => {
      const { run } = await host.query({ run: { kind: 'command', argv } }, { signal: services.signal, timeoutMs });
      return { host: name, result: run, problems: [] };
    });
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { host: name, result: null, problems: error.problems.map((problem) => ({ host: name, ...problem })) };
  }
}

function problemsOf({ host, result, problems }: ExecutedCommand): readonly Problem[] {
  if (result === null) return problems;
  const message = result.exitCode === null ? 'a signal killed the command' : `the command exited with code ${result.exitCode}`;
  return [{ host, code: 'COMMAND_FAILED', message }];
}
