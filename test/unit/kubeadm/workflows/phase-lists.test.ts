import { describe, expect, it } from 'vitest';
import { definePhase } from '../../../../src/host/phase.ts';
import { planWorkflow } from '../../../../src/host/run-workflow.ts';
import { needsKubelet } from '../../../../src/kubeadm/use-cases/init-phases.ts';
import { initWorkflow } from '../../../../src/kubeadm/workflows/init.ts';
import { initControlPlaneWorkflow } from '../../../../src/kubeadm/workflows/init-control-plane.ts';
import { joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { joinControlPlaneWorkflow } from '../../../../src/kubeadm/workflows/join-control-plane.ts';
import {
  INIT_PHASES,
  JOIN_PHASES,
  type PhaseHelp,
  RESET_PHASES,
  UPGRADE_APPLY_PHASES,
  UPGRADE_NODE_PHASES,
} from '../../../../src/kubeadm/workflows/phase-lists.ts';
import { resetWorkflow } from '../../../../src/kubeadm/workflows/reset.ts';
import { upgradeApplyWorkflow } from '../../../../src/kubeadm/workflows/upgrade/upgrade-apply.ts';
import { upgradeControlPlaneNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade/upgrade-control-plane-node.ts';
import { upgradeNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade-node.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

type Phases = readonly { readonly name: string; readonly short: string }[];

/** A group entry covers all phases below it and names each of them. */
const isIn = ({ name }: PhaseHelp, phase: string): boolean => phase === name || phase.startsWith(`${name}/`);

/** The entry of a phase or of its group. */
function entryOf(help: readonly PhaseHelp[], phase: string): PhaseHelp | undefined {
  return help.find(({ name }) => name === phase) ?? help.find((entry) => isIn(entry, phase));
}

/** The phases that run, of a workflow whose phases have the same names and do nothing. */
async function planned(phases: Phases, run: { readonly skipPhases?: readonly string[]; readonly onlyPhase?: string }) {
  const idle = phases.map(({ name, short }) =>
    definePhase<null, null>({ name, short, observe: async () => null, plan: () => ({ changes: [], noop: 'idle' }) }),
  );
  const workflow = { name: 'test', phases: idle, prepare: async () => ({ input: null, warnings: [], refusals: [] }) };
  const context = { host: fakeHost({ files: {} }), cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  const { host } = await planWorkflow(workflow, context, null, { dryRun: true, skipPhases: [], ...run });
  return host.phases.map(({ phase }) => phase);
}

const namesOf = (phases: Phases): readonly string[] => phases.map(({ name }) => name);

describe.each<[string, readonly PhaseHelp[], readonly Phases[]]>([
  ['init', INIT_PHASES, [initControlPlaneWorkflow.phases, initWorkflow.phases]],
  ['join', JOIN_PHASES, [joinControlPlaneWorkflow.phases, joinWorkflow.phases]],
  ['upgrade apply', UPGRADE_APPLY_PHASES, [upgradeApplyWorkflow.phases]],
  ['upgrade node', UPGRADE_NODE_PHASES, [upgradeControlPlaneNodeWorkflow.phases, upgradeNodeWorkflow.phases]],
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

  it('lists the names that select the phases of the workflow, and that --skip-phases accepts', async () => {
    const [whole = []] = workflows;
    const inWhole = help.filter((entry) => whole.some(({ name }) => isIn(entry, name)));
    const selected = new Set<string>();
    for (const entry of inWhole) {
      const own = namesOf(whole).filter((name) => isIn(entry, name));
      expect(await planned(whole, { onlyPhase: entry.name })).toEqual(own);
      expect(await planned(whole, { skipPhases: [entry.name] })).toEqual(namesOf(whole).filter((name) => !own.includes(name)));
      for (const name of own) selected.add(name);
    }
    expect([...selected].sort()).toEqual([...namesOf(whole)].sort());
  });
});

describe('a single phase of init', () => {
  const { phases } = initControlPlaneWorkflow;

  it('needs the requirements of the kubelet only if it uses the kubelet', () => {
    expect(namesOf(phases.filter((phase) => needsKubelet({ phases }, phase.name)))).toEqual([
      'preflight/pull-images',
      'kubelet-start',
      'kubelet-start/remember',
      'wait-control-plane',
      'wait-control-plane/cluster-admins',
      'kubelet-finalize/enable-client-cert-rotation',
    ]);
    expect(needsKubelet({ phases }, undefined)).toBe(true);
    expect(needsKubelet({ phases }, 'preflight')).toBe(true);
    expect(needsKubelet({ phases }, 'control-plane')).toBe(false);
    expect(needsKubelet(initWorkflow, 'preflight')).toBe(true);
    expect(namesOf(initWorkflow.phases.filter(({ name }) => needsKubelet(initWorkflow, name)))).toEqual([
      'kubelet-start',
      'kubelet-start/remember',
      'kubelet-wait-bootstrap',
    ]);
  });
});

describe('the phases of a control plane that need no address of its API server', () => {
  it.each([
    ['init', initControlPlaneWorkflow.phases],
    ['join', joinControlPlaneWorkflow.phases],
  ])('are the phases of preflight and of the kubelet files in %s', (_, phases) => {
    const without = phases.filter(({ needsNoAddress }) => needsNoAddress);
    expect(without.map(({ name }) => name)).toEqual(['preflight/pull-images', 'kubelet-start', 'kubelet-start/remember']);
  });
});
