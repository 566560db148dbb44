import { beforeEach, describe, expect, it } from 'vitest';
import { parseSource } from '../../../../src/codec/source.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { impactOfPlan } from '../../../../src/host/plan/document.ts';
import { planWorkflow } from '../../../../src/host/run-workflow.ts';
import { type JoinOptions, joinWorkflow } from '../../../../src/kubeadm/workflows/join.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { hostToJoin, optionsToJoin, regular } from '../../../support/host-to-join.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';
import { withRun } from '../../../support/with-run.ts';

const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const EXTRA = '/etc/default/kubelet';
const RUN = { dryRun: false, skipPhases: [] };
const [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
const clock = fakeClock();
let { cluster, host } = hostToJoin(clock);
beforeEach(() => {
  ({ cluster, host } = hostToJoin(clock));
});

const context = (): PhaseContext => ({ host, cluster, clock, reporter: recordingReporter() });
const options = (fields: string, more: Partial<JoinOptions> = {}): JoinOptions =>
  optionsToJoin({ templates, catalogue, admin: cluster }, { overlays: parseSource(`${HEADER}${fields}\n`, 'w1.yaml').documents, ...more });
const plan = (fields: string, more?: Partial<JoinOptions>) => planWorkflow(joinWorkflow, context(), options(fields, more), RUN);
const extraArgs = (flags: string): void => void host.files.set(EXTRA, regular(`KUBELET_EXTRA_ARGS=${flags}\n`));
const codes = async (planned: ReturnType<typeof plan>) => (await planned).warnings.map(({ code, field }) => `${code} ${field}`);

describe('a field that the kubelet would not use', () => {
  it.each([
    ['another configuration file', '--config=/etc/my.yaml', `${EXTRA} sets --config=/etc/my.yaml`],
    ['a flag', '--max-pods=50', `maxPods: 81 is overridden by --max-pods, KUBELET_EXTRA_ARGS in ${EXTRA}, with 50`],
    ['a drop-in file', '--config-dir=/etc/kubelet.d', 'maxPods: 81 is overridden by /etc/kubelet.d/10.conf:3, with 90'],
  ])('is refused before the host is changed, because of %s', async (_, flags, message) => {
    extraArgs(flags);
    host.files.set('/etc/my.yaml', regular(`${HEADER}maxPods: 78\n`));
    host.files.set('/etc/kubelet.d', { type: 'directory', mode: 0o755, owner: 'root:root' });
    host.files.set('/etc/kubelet.d/10.conf', regular(`${HEADER}maxPods: 90\n`));
    await expect(runWorkflow(joinWorkflow, context(), options('maxPods: 81'), RUN)).rejects.toMatchObject({
      code: 'FieldNotInForce',
      exitCode: 3,
      message: expect.stringContaining(message),
    });
    expect(host.performed.filter(({ kind }) => kind === 'write-file')).toEqual([]);
  });

  it('is a warning if the run does not change it, or a flag of the node overrides it', async () => {
    await runWorkflow(joinWorkflow, context(), options('maxPods: 81'), RUN);
    extraArgs('--max-pods=50');
    expect(await codes(plan('maxPods: 81'))).toContain('FLAG_SHADOWS_FIELD maxPods');
    host.files.delete(EXTRA);
    const nodeRegistration = { kubeletExtraArgs: [{ name: 'max-pods', value: '50' }] };
    expect(await codes(plan('maxPods: 82', { nodeRegistration }))).toContain('FLAG_SHADOWS_FIELD maxPods');
    await expect(plan('', { nodeRegistration, settings: ['maxPods=83'] })).rejects.toMatchObject({ code: 'FieldNotInForce' });
  });

  it('is a warning with --ignore-preflight-errors', async () => {
    extraArgs('--config=/etc/my.yaml');
    host.files.set('/etc/my.yaml', regular(`${HEADER}maxPods: 78\n`));
    expect(await codes(plan('maxPods: 81', withRun({ ignorePreflightErrors: ['fieldnotinforce'] })))).toContain(
      'FieldNotInForce undefined',
    );
  });
});

describe('the impact of a change of the command line', () => {
  it('includes a pending edit that the restart applies', async () => {
    await runWorkflow(joinWorkflow, context(), options('maxPods: 81', withRun({ podLoss: 'ignore' })), RUN);
    const argv = ['/usr/bin/kubelet', '--config=/var/lib/kubelet/config.yaml', '--hostname-override=worker-two'];
    const known = hostToJoin(clock, {
      sh: ([, , script = '']: readonly string[]) =>
        script.includes('/cmdline')
          ? { stdout: `7 1 2\n${argv.join('\0')}\0` }
          : { exitCode: script.includes('command -v systemctl') ? 0 : 1 },
    });
    for (const [path, file] of host.files) known.host.files.set(path, file);
    Object.assign(known.host.units.get('kubelet') ?? {}, { state: { ...host.units.get('kubelet')?.state, needsReload: true } });
    host = known.host;
    const { host: planned } = await plan('maxPods: 81', withRun({ podLoss: 'ignore' }));
    const changes = planned.phases.flatMap((phase) => phase.plan.changes);
    expect(changes.find(({ kind }) => kind === 'restart-unit')).toMatchObject({
      impact: 'unsafe',
      fields: expect.arrayContaining([{ field: '--hostname-override', before: 'worker-two', after: null, impact: 'unsafe' }]),
    });
    expect(impactOfPlan(planned)).toBe('unsafe');
  });
});
