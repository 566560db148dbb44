import type { Services } from './services.ts';
import type { OutputRequest } from './show-document.ts';

/** Join commands, each with the kind of node that it adds. */
export type JoinCommands = ReadonlyMap<string, 'worker' | 'control-plane'>;

/** Prints the commands on standard output, except for documents, which must stay parseable. */
export function printJoinCommands(services: Services, commands: JoinCommands, { format }: OutputRequest): void {
  if (commands.size === 0) return;
  if (format !== 'text') {
    services.output.stderr('To print a join command, run: kubeletadm token create --print-join-command\n');
    return;
  }
  const lines = (kind: 'worker' | 'control-plane'): readonly string[] =>
    [...commands].flatMap(([command, joins]) => (joins === kind ? [`  ${command.trimEnd()}\n`] : []));
  const [workers, controlPlanes] = [lines('worker'), lines('control-plane')];
  if (controlPlanes.length > 0) services.output.stdout(`\nJoin other control planes with:\n\n${controlPlanes.join('')}`);
  const others = controlPlanes.length > 0 ? 'workers' : 'other nodes';
  if (workers.length > 0) services.output.stdout(`\nJoin ${others} with:\n\n${workers.join('')}\n`);
}
