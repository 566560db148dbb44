import { describe, expect, it } from 'vitest';
import { initWorkflow } from '../../../../src/kubeadm/workflows/init.ts';
import { initControlPlaneWorkflow } from '../../../../src/kubeadm/workflows/init-control-plane.ts';
import { joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { joinControlPlaneWorkflow } from '../../../../src/kubeadm/workflows/join-control-plane.ts';
import {
  INIT_PHASES,
  JOIN_PHASES,
  type PhaseHelp,
  RESET_PHASES,
  UPGRADE_NODE_PHASES,
} from '../../../../src/kubeadm/workflows/phase-lists.ts';
import { resetWorkflow } from '../../../../src/kubeadm/workflows/reset.ts';
import { upgradeNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade-node.ts';

type Phases = readonly { readonly name: string; readonly short: string }[];

/** A group entry covers all phases below it and names each of them. */
const isIn = ({ name }: PhaseHelp, phase: string): boolean => phase === name || phase.startsWith(`${name}/`);

/** The entry of a phase or of its group. */
function entryOf(help: readonly PhaseHelp[], phase: string): PhaseHelp | undefined {
  return help.find(({ name }) => name === phase) ?? help.find((entry) => isIn(entry, phase));
}

describe.each<[string, readonly PhaseHelp[], readonly Phases[]]>([
  ['init', INIT_PHASES, [initControlPlaneWorkflow.phases, initWorkflow.phases]],
  ['join', JOIN_PHASES, [joinControlPlaneWorkflow.phases, joinWorkflow.phases]],
  ['upgrade node', UPGRADE_NODE_PHASES, [upgradeNodeWorkflow.phases]],
  ['reset', RESET_PHASES, [resetWorkflow.phases]],
])('help text of the phases of %s', (_, help, workflows) => {
  it('lists all phases in workflow order', () => {
    const [whole = []] = workflows;
    const places = whole.map(({ name }) => help.indexOf(entryOf(help, name) as PhaseHelp));
    expect(places).not.toContain(-1);
    expect(places).toEqual([...places].sort((a, b) => a - b));
  });

  it('lists no unknown phase', () => {
    const names = workflows.flatMap((phases) => phases.map(({ name }) => name));
    const unknown = help.filter((entry) => entry.name !== 'preflight' && !names.some((name) => isIn(entry, name)));
    expect(unknown).toEqual([]);
  });

  it('contains the short text of each phase, and the names of phases in a group', () => {
    const text = help.map(({ short }) => short).join(' ');
    for (const { name, short } of workflows.flat()) {
      const entry = entryOf(help, name);
      if (entry?.name === name)
        expect(entry.short.startsWith(short) || entry.short.includes(':'), `${name}: ${entry.short} / ${short}`).toBe(true);
      else expect(text, name).toContain(name.slice(name.lastIndexOf('/') + 1));
    }
  });
});
