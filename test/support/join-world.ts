import { beforeAll, beforeEach } from 'vitest';
import { AppError } from '../../src/base/errors.ts';
import { parseSource, type SourceDocument } from '../../src/codec/source.ts';
import { planWorkflow } from '../../src/host/run-workflow.ts';
import { NodeGroups } from '../../src/kubeadm/render/node-groups.ts';
import { type JoinOptions, joinWorkflow } from '../../src/kubeadm/workflows/join.ts';
import type { UpgradeNodeOptions } from '../../src/kubeadm/workflows/upgrade/upgrade-node.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../../src/template-files.ts';
import { fakeClock } from './fake-clock.ts';
import type { FakeCluster } from './fake-cluster.ts';
import type { FakeHost, FakeHostOptions } from './fake-host.ts';
import { hostToJoin, NO_SETTINGS_OF_NODE, optionsToJoin } from './host-to-join.ts';
import { recordingReporter } from './recording-reporter.ts';
import { runWorkflow } from './run-workflow.ts';

export let clock: ReturnType<typeof fakeClock>;
export let templates: JoinOptions['templates'];
export let catalogue: JoinOptions['catalogue'];
export let cluster: FakeCluster;
export let host: FakeHost;
export let reporter: ReturnType<typeof recordingReporter>;

/** Options of a run that writes everything. */
export const RUN = { dryRun: false, skipPhases: [] } as const;

/** Gives each test of a file a new host `w1`, the cluster that it can join, and a reporter. */
export function useJoinWorld(commands?: FakeHostOptions['commands']): void {
  beforeAll(async () => {
    clock = fakeClock();
    [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
  });
  beforeEach(() => {
    reporter = recordingReporter();
    replaceHost(commands);
  });
}

/** Another host and cluster for the rest of a test. */
export function replaceHost(commands?: FakeHostOptions['commands']): void {
  ({ cluster, host } = hostToJoin(clock, commands));
}

export const contextOf = () => ({ host, cluster, clock, reporter });

/** An overlay with these fields of a KubeletConfiguration. */
export const overlay = (fields: string): readonly SourceDocument[] =>
  parseSource(`apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${fields}\n`, 'w1.yaml').documents;

export const joinOptions = (fields: string, more: Partial<JoinOptions> = {}): JoinOptions =>
  optionsToJoin({ templates, catalogue, admin: cluster }, { overlays: overlay(fields), ...more });
export const planJoin = (fields: string, more: Partial<JoinOptions> = {}) =>
  planWorkflow(joinWorkflow, contextOf(), joinOptions(fields, more), RUN);
export const join = (fields: string, more: Partial<JoinOptions> = {}) =>
  runWorkflow(joinWorkflow, contextOf(), joinOptions(fields, more), RUN);

export const upgradeOptions = (more: Partial<UpgradeNodeOptions> = {}): UpgradeNodeOptions => ({
  ...NO_SETTINGS_OF_NODE,
  templates,
  catalogue,
  groups: new NodeGroups(),
  overlays: null,
  settings: null,
  patches: null,
  ignoreSavedSettings: false,
  kubeletHealthCheckMs: 10_000,
  trust: null,
  nodeName: null,
  ...more,
});

/** The exit code and problems with which a run is refused. */
export async function refusalOf(work: Promise<unknown>) {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AppError)) throw error ?? new Error('the run was not refused');
  return { exitCode: error.exitCode, problems: error.problems };
}

/** `CODE: message` of each problem of a join; none when it is not refused. */
export async function refusalsOfJoin(fields: string, more: Partial<JoinOptions> = {}): Promise<readonly string[]> {
  try {
    await planJoin(fields, more);
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.problems.map(({ code, message }) => `${code}: ${message}`);
  }
}
