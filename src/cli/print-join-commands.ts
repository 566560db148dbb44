import type { Services } from './services.ts';
import type { OutputRequest } from './show-document.ts';

/** By the command, whom it joins. */
export type JoinCommands = ReadonlyMap<string, 'worker' | 'control-plane'>;

/** On standard output, and only there. They would break a document. */
export function printJoinCommands(services: Services, commands: JoinCommands, { format }: OutputRequest): void {
  if (commands.size === 0) return;
  if (format !== 'text') {
    services.output.stderr('The command that joins nodes: kubeletadm token create --print-join-command\n');
    return;
  }
  const lines = (kind: 'worker' | 'control-plane'): readonly string[] =>
    [...commands].flatMap(([command, joins]) => (joins === kind ? [`  ${command.trimEnd()}\n`] : []));
  const [workers, controlPlanes] = [lines('worker'), lines('control-plane')];
  if (controlPlanes.length > 0) services.output.stdout(`\nJoin other control planes with:\n\n${controlPlanes.join('')}`);
  const others = controlPlanes.length > 0 ? 'workers' : 'other nodes';
  if (workers.length > 0) services.output.stdout(`\nJoin ${others} with:\n\n${workers.join('')}\n`);
}
