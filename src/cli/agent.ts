import type { ExitCode } from '../base/errors.ts';
import { type NodeAgentRequest, runNodeAgent } from '../dynamic/use-cases/run-node-agent.ts';
import type { Services } from './output/services.ts';

export interface AgentRequest extends NodeAgentRequest {
  readonly verbosity: number;
}

/** `agent`: runs until it is stopped. Exit code 0 when a signal requested the stop. */
export async function runAgentCommand(services: Services, request: AgentRequest): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  await runNodeAgent(services, request, { reporter, connect: () => services.connectHost({}) });
  return 0;
}
