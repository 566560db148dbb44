import type { PhaseHelp } from '../kubeadm/workflows/phase-lists.ts';

/** Phases as help shows them, one a line. */
export function phaseLines(phases: readonly PhaseHelp[]): string {
  const width = Math.max(...phases.map(({ name }) => name.length));
  return phases.map(({ name, short }) => `  ${name.padEnd(width)}  ${short}`).join('\n');
}
