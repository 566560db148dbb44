import { expect, it } from 'vitest';
import type { Workflow } from '../../../../src/host/run-workflow.ts';
import { agentRemove, resetAgent } from '../../../../src/kubeadm/phases/agent-remove.ts';
import { AGENT_DIRECTORY, PROGRAM_DIRECTORY } from '../../../../src/kubelet/node-agent/agent-program.ts';
import { acceptedFile, pointerFile, signersFile, stateFiles } from '../../../../src/kubelet/node-agent/layout.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';

const input = { directory: AGENT_DIRECTORY, programDirectory: PROGRAM_DIRECTORY, keepsDropInDirectory: true };
const ACCEPTED = acceptedFile(AGENT_DIRECTORY);
const FILES = [
  ...stateFiles(AGENT_DIRECTORY),
  signersFile(AGENT_DIRECTORY),
  pointerFile(AGENT_DIRECTORY),
  `${AGENT_DIRECTORY}/checkpoints/a/b`,
];

async function remove(phase: typeof agentRemove | typeof resetAgent, paths: readonly string[]) {
  const host = fakeHost({ files: Object.fromEntries(paths.map((path) => [path, 'x'])), units: {} });
  const context = { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  const workflow: Workflow<null, null> = {
    name: 'test',
    phases: [phase.select(() => input)],
    prepare: async () => ({ input: null, warnings: [], refusals: [] }),
  };
  const run = () => runWorkflow(workflow, context, null, { dryRun: false, skipPhases: [] });
  await run();
  const second = (await run()).host.phases[0]?.plan;
  return { left: [...host.files.keys()].filter((path) => path.startsWith(AGENT_DIRECTORY)), second };
}

it('dynamic disable keeps the accepted revision of signed configurations, so that a later agent refuses older ones', async () => {
  const { left, second } = await remove(agentRemove, [...FILES, ACCEPTED]);
  expect(left.toSorted()).toEqual([AGENT_DIRECTORY, ACCEPTED]);
  expect(second).toEqual({ changes: [], noop: 'the agent is not installed' });
});

it('dynamic disable keeps a directory that is not of the agent', async () => {
  const other = `${AGENT_DIRECTORY}/backup`;
  const { left, second } = await remove(agentRemove, [...FILES, ACCEPTED, `${other}/config.yaml`]);
  expect(left.toSorted()).toEqual([AGENT_DIRECTORY, ACCEPTED, other, `${other}/config.yaml`]);
  expect(second).toEqual({ changes: [], noop: 'the agent is not installed' });
});

it.each([
  ['dynamic disable without signed configurations', agentRemove, FILES],
  ['reset', resetAgent, [...FILES, ACCEPTED]],
])('%s removes the directory of the agent', async (_, phase, paths) => {
  expect((await remove(phase, paths)).left).toEqual([]);
});
