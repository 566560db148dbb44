import type { Services } from './cli/services.ts';
import type { Environment } from './run-process.ts';
import { connectLocalHost, localServices, type WholeProgram } from './wiring-local.ts';

/** Services of the agent's own program: this host and its API server, without SSH and all that only operators use. */
export function createAgentServices(environment: Environment): Services {
  const absent = (): never => {
    throw new Error('the program of the agent does not contain this');
  };
  const operators = {
    readProgram: absent,
    runLocal: absent,
    newToken: absent,
    certificateIssuer: absent,
    confirm: absent,
    templates: absent,
    runJournals: absent,
    openHostKeys: absent,
    readSshConfig: absent,
    connectEtcd: absent,
    startLab: absent,
  } satisfies Omit<Pick<Services, WholeProgram>, 'connectHost'>;
  return { ...localServices(environment), ...operators, connectHost: connectLocalHost };
}
