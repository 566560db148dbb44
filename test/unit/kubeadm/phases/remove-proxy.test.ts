import { describe, expect, it } from 'vitest';
import { renderTemplate } from '../../../../src/codec/render-template.ts';
import { PROXY_ENVIRONMENT_FILE, proxyDropIn } from '../../../../src/host/install/proxy.ts';
import type { Workflow } from '../../../../src/host/run-workflow.ts';
import { removeProxy } from '../../../../src/kubeadm/phases/proxy.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';

const templates = await loadTemplates();
const workflow: Workflow<null, null> = {
  name: 'test',
  phases: [removeProxy.select((input: null) => input)],
  prepare: async () => ({ input: null, warnings: [], refusals: [] }),
};
const ofFleet = (path: string): string =>
  String(renderTemplate(templates, path, { environmentFile: PROXY_ENVIRONMENT_FILE, variables: [] }));
const ofImage = '# Written by kubeletadm config user-data.\n[Service]\nEnvironment="HTTPS_PROXY=http://proxy:1"\n';
const ofAdministrator = '[Service]\nEnvironment=HTTPS_PROXY=http://other:1\n';

async function reset(files: Readonly<Record<string, string>>) {
  const units = { containerd: fakeUnit({ activeState: 'active' }), kubelet: fakeUnit({ activeState: 'active' }) };
  const host = fakeHost({ files, units });
  const context = { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  const run = () => runWorkflow(workflow, context, null, { dryRun: false, skipPhases: [] });
  const first = await run();
  return { host, units, changes: first.host.phases[0]?.plan.changes.map(({ kind }) => kind), second: (await run()).host.phases[0]?.plan };
}

describe('the proxy of a fleet file in a reset', () => {
  it('is removed with its credentials, and the container runtime restarts without it', async () => {
    const paths = [PROXY_ENVIRONMENT_FILE, proxyDropIn('containerd'), proxyDropIn('kubelet')];
    const { host, units, changes, second } = await reset(Object.fromEntries(paths.map((path) => [path, ofFleet(path)])));
    expect(paths.filter((path) => host.files.has(path))).toEqual([]);
    expect(changes).toEqual(['remove-file', 'remove-file', 'remove-file', 'daemon-reload', 'restart-unit']);
    expect([units.containerd.starts, units.kubelet.starts]).toEqual([1, 0]);
    expect(second).toEqual({ changes: [], noop: 'no proxy of a fleet file' });
  });

  it('is kept if the image or an administrator configured it', async () => {
    const { host, changes } = await reset({ [proxyDropIn('containerd')]: ofImage, [proxyDropIn('kubelet')]: ofAdministrator });
    expect(changes).toEqual([]);
    expect([host.text(proxyDropIn('containerd')), host.text(proxyDropIn('kubelet'))]).toEqual([ofImage, ofAdministrator]);
  });
});
