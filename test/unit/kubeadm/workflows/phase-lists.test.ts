import { describe, expect, it } from 'vitest';
import { definePhase } from '../../../../src/host/phase.ts';
import { DEFAULT_RUN } from '../../../../src/host/run-settings.ts';
import { planWorkflow } from '../../../../src/host/run-workflow.ts';
import { checksOf } from '../../../../src/kubeadm/use-cases/init-phases.ts';
import { initWorkflow } from '../../../../src/kubeadm/workflows/init.ts';
import { joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { joinControlPlaneWorkflow } from '../../../../src/kubeadm/workflows/join-control-plane.ts';
import type { PhasedCommand } from '../../../../src/kubeadm/workflows/phase-lists.ts';
import { PHASE_LISTS } from '../../../../src/kubeadm/workflows/phase-lists.ts';
import { resetWorkflow } from '../../../../src/kubeadm/workflows/reset.ts';
import { upgradeControlPlaneNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade/control-plane-upgrade.ts';
import { upgradeApplyWorkflow } from '../../../../src/kubeadm/workflows/upgrade/upgrade-apply.ts';
import { upgradeNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade/upgrade-node.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

type Phases = readonly { readonly name: string; readonly short: string }[];

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

describe.each<[PhasedCommand, readonly Phases[]]>([
  ['init', [initWorkflow.phases]],
  ['join', [joinControlPlaneWorkflow.phases, joinWorkflow.phases]],
  ['upgrade apply', [upgradeApplyWorkflow.phases]],
  ['upgrade node', [upgradeControlPlaneNodeWorkflow.phases, upgradeNodeWorkflow.phases]],
  ['reset', [resetWorkflow.phases]],
])('the phases of %s in help', (command, workflows) => {
  const help = PHASE_LISTS[command];
  const [whole = []] = workflows;

  it('are preflight and the phases of its workflows, each once', () => {
    expect(namesOf(help).toSorted()).toEqual([...new Set(['preflight', ...workflows.flatMap(namesOf)])].sort());
    for (const { name, short } of workflows.flat())
      expect(help.find((phase) => phase.name === name)?.short.replace(/ \(only [^()]+\)$/, '')).toBe(short);
  });

  it('have the order in which they run', () => {
    expect(namesOf(help)[0]).toBe('preflight');
    expect(namesOf(help).filter((name) => namesOf(whole).includes(name))).toEqual(namesOf(whole));
  });

  it('are selected and skipped by their names, with the phases below them', async () => {
    const isIn = (phase: string, name: string): boolean => phase === name || phase.startsWith(`${name}/`);
    for (const name of namesOf(help).filter((each) => namesOf(whole).some((phase) => isIn(phase, each)))) {
      const own = namesOf(whole).filter((phase) => isIn(phase, name));
      expect(await planned(whole, { onlyPhase: name })).toEqual(own);
      expect(await planned(whole, { skipPhases: [name] })).toEqual(namesOf(whole).filter((phase) => !own.includes(phase)));
    }
  });
});

it('names the condition under which a phase of one workflow runs', () => {
  const shortOf = (command: PhasedCommand, name: string) => PHASE_LISTS[command].find((phase) => phase.name === name)?.short;
  expect(shortOf('init', 'certs/ca')).not.toContain('only');
  expect(shortOf('join', 'etcd-join')).toMatch(/ \(only with --control-plane\)$/);
  expect(shortOf('join', 'kubelet-start')).not.toContain('only');
  expect(shortOf('upgrade node', 'control-plane/etcd')).toMatch(/ \(only on control planes\)$/);
});

describe('the checks of a single phase', () => {
  it.each([
    ['init', initWorkflow],
    ['join', joinWorkflow],
    ['join --control-plane', joinControlPlaneWorkflow],
  ])('of %s are those of a changed kubelet, or none', (_, workflow) => {
    const checksFor = (onlyPhase: string | undefined) => checksOf(workflow, { ...DEFAULT_RUN, onlyPhase });
    const checked = namesOf(workflow.phases).filter((name) => !checksFor(name).skipPreflight);
    expect(checked).toEqual(['kubelet-start', 'kubelet-start/remember']);
    for (const name of namesOf(workflow.phases)) expect(checksFor(name).singlePhase).toBe(true);
    for (const whole of [undefined, 'preflight']) expect(checksFor(whole)).toEqual({ skipPreflight: false });
    expect(checksOf(workflow, { ...DEFAULT_RUN, skipPhases: ['preflight'] })).toEqual({ skipPreflight: true });
  });
});

describe('the phases of a control plane that need no address of its API server', () => {
  it.each([
    ['init', initWorkflow.phases],
    ['join', joinControlPlaneWorkflow.phases],
  ])('are the phases of preflight and of the kubelet files in %s', (_, phases) => {
    const without = phases.filter(({ needsNoAddress }) => needsNoAddress);
    expect(without.map(({ name }) => name)).toEqual(['preflight/pull-images', 'kubelet-start', 'kubelet-start/remember']);
  });
});
