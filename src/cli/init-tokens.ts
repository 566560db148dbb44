import { Secret } from '../base/text/secret.ts';
import type { Services } from './services.ts';
import type { OutputRequest } from './show-document.ts';

/** Whether a phase of init is going to run: not left out, and the one asked for where one was. A parent stands for its children. */
export function phaseSelection(skipped: readonly string[], onlyPhase: string | undefined): (phase: string) => boolean {
  const isIn = (phase: string, name: string): boolean => phase === name || phase.startsWith(`${name}/`);
  return (phase) => !skipped.some((name) => isIn(phase, name)) && (onlyPhase === undefined || isIn(phase, onlyPhase));
}

/** Whether a phase of init is left out by its name or its parent's. */
export function isLeftOut(skipped: readonly string[]): (phase: string) => boolean {
  const runs = phaseSelection(skipped, undefined);
  return (phase) => !runs(phase);
}

/** New tokens. */
export function freshTokens(services: Services, count: number): Promise<readonly Secret[]> {
  return Promise.all(Array.from({ length: count }, () => services.newToken()));
}

/** A dry run makes no tokens, and prints the same plan each time. */
export function placeholderTokens(count: number): readonly Secret[] {
  return Array.from(
    { length: count },
    (_, i) => new Secret(`${'dryrun'.slice(0, 6 - String(i || '').length)}${i || ''}.${'0'.repeat(16)}`),
  );
}

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
