import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { parseSource } from '../../../../src/codec/source.ts';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { planWorkflow, runWorkflow } from '../../../../src/host/run-workflow.ts';
import { type JoinOptions, joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { loadCatalogue } from '../../../../src/kubelet/load-catalogue.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import type { FakeCluster } from '../../../support/fake-cluster.ts';
import type { FakeHost } from '../../../support/fake-host.ts';
import { hostToJoin, optionsToJoin } from '../../../support/host-to-join.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

let templates: Awaited<ReturnType<typeof loadTemplates>>;
let catalogue: Awaited<ReturnType<typeof loadCatalogue>>;
beforeAll(async () => {
  [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
});

const clock = fakeClock();
let cluster: FakeCluster;
let host: FakeHost;
beforeEach(() => {
  ({ cluster, host } = hostToJoin(clock));
});

const contextOf = (): PhaseContext => ({ host, cluster, clock, reporter: recordingReporter() });
const optionsOf = (fields: string, more: Partial<JoinOptions> = {}): JoinOptions => {
  const text = `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${fields}\n`;
  return optionsToJoin({ templates, catalogue, admin: cluster }, { overlays: parseSource(text, 'w1.yaml').documents, ...more });
};
const plan = (fields: string, more: Partial<JoinOptions> = {}) =>
  planWorkflow(joinWorkflow, contextOf(), optionsOf(fields, more), { dryRun: false, skipPhases: [] });
/** `CODE: message` of each problem of a join. */
const refusals = async (fields: string): Promise<readonly string[]> => {
  try {
    await plan(fields);
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.problems.map(({ code, message }) => `${code}: ${message}`);
  }
};
const directory = (mode = 0o755): FileFact => ({ type: 'directory', mode, owner: 'root:root' });
const OTHERS = 'KUBELET_UNSAFE_DIRECTORY: /srv/victim contains file1, which are not logs of pods: the kubelet would delete them';

describe('podLogsDir with other content is refused', () => {
  beforeEach(() => {
    host.files.set('/srv/victim', directory());
    host.files.set('/srv/victim/file1', { type: 'file', mode: 0o644, owner: 'root:root', content: 'x' });
  });

  it('on a host without a node', async () => {
    expect(await refusals('podLogsDir: /srv/victim')).toEqual([OTHERS]);
    expect(host.performed).toEqual([]);
  });

  it('on a node, also where every impact is permitted', async () => {
    await runWorkflow(joinWorkflow, contextOf(), optionsOf('maxPods: 110'), { dryRun: false, skipPhases: [] });
    const before = host.performed.length;
    expect(await refusals('maxPods: 110\npodLogsDir: /srv/victim')).toEqual([OTHERS]);
    expect(host.performed.slice(before)).toEqual([]);
  });

  it('but not if it is in use', async () => {
    host.files.delete('/srv/victim/file1');
    await runWorkflow(joinWorkflow, contextOf(), optionsOf('podLogsDir: /srv/victim'), { dryRun: false, skipPhases: [] });
    host.files.set('/srv/victim/note', { type: 'file', mode: 0o644, owner: 'root:root', content: 'x' });
    expect(await refusals('podLogsDir: /srv/victim\nmaxPods: 111')).toEqual([]);
  });
});

it('volumePluginDir that others can write is refused', async () => {
  host.files.set('/opt', directory(0o777));
  expect(await refusals('volumePluginDir: /opt/plug')).toEqual([
    'KUBELET_UNSAFE_DIRECTORY: /opt (root:root, mode 777) can be written by others than root, and the kubelet would run the programs in /opt/plug as root',
  ]);
});
