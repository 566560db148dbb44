import type { ExitCode } from '../base/errors.ts';
import { type InitRequest as CommandRequest, type JoinCommands, openInit } from '../fleet/use-cases/open-init.ts';
import { runOpened } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import type { OutputRequest } from './show-document.ts';
import type { PlanRequest } from './show-plan.ts';

export interface InitRequest extends CommandRequest {
  readonly plan: PlanRequest;
}

/** `init` and `init phase NAME...`. */
export function runInit(services: Services, request: InitRequest): Promise<ExitCode> {
  const { plan } = request;
  return runOpened(services, plan, {
    title: 'init',
    open: (reporter) => openInit(services, request, reporter),
    afterwards: ({ joinCommands, certificateKey }) => {
      const key = certificateKey();
      if (joinCommands.size > 0) printJoinCommands(services, joinCommands, plan);
      // The join command contains the key already.
      else if (key !== null && !request.skipCertificateKeyPrint && plan.format === 'text')
        services.output.stdout(`\nThe certificate key, for join --control-plane:\n\n  ${key.reveal()}\n\n`);
    },
  });
}

/** Prints the commands on standard output, except for documents, which must stay parseable. */
function printJoinCommands({ output }: Services, commands: JoinCommands, { format }: OutputRequest): void {
  if (format !== 'text') {
    output.stderr('To print a join command, run: kubeletadm token create --print-join-command\n');
    return;
  }
  const lines = (kind: 'worker' | 'control-plane'): readonly string[] =>
    [...commands].flatMap(([command, joins]) => (joins === kind ? [`  ${command.trimEnd()}\n`] : []));
  const [workers, controlPlanes] = [lines('worker'), lines('control-plane')];
  if (controlPlanes.length > 0) output.stdout(`\nJoin other control planes with:\n\n${controlPlanes.join('')}`);
  const others = controlPlanes.length > 0 ? 'workers' : 'other nodes';
  if (workers.length > 0) output.stdout(`\nJoin ${others} with:\n\n${workers.join('')}\n`);
}
