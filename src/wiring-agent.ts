import type { Services } from './cli/output/services.ts';
import type { Environment } from './run-process.ts';
import { connectLocalHost, localServices, type MainProgramPorts } from './wiring-local.ts';

/** Ports of the agent program: the local host and its API server, without SSH and other parts for operators. */
export function createAgentServices(environment: Environment): Services {
  const absent = (): never => {
    throw new Error('the agent program does not include this service');
  };
  const operators = {
    readProgram: absent,
    runLocal: absent,
    bundleFiles: absent,
    newToken: absent,
    certificateIssuer: absent,
    canAsk: false,
    confirm: absent,
    runEditor: absent,
    templates: absent,
    problemPages: absent,
    runJournals: absent,
    planSignatures: absent,
    signWithSsh: absent,
    openHostKeys: absent,
    readSshConfig: absent,
    connectEtcd: absent,
    serveHooks: absent,
    inRoot: absent,
  } satisfies Omit<Pick<Services, MainProgramPorts>, 'connectHost'>;
  return { ...localServices(environment), ...operators, connectHost: connectLocalHost };
}
