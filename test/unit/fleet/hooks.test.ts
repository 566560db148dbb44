import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/text/secret.ts';
import { planWithHooks } from '../../../src/fleet/run/plan-with-hooks.ts';
import { type HostHooks, readHookFailure, runHook } from '../../../src/host/hooks.ts';
import type { Change } from '../../../src/host/plan/change.ts';
import type { HostPlan } from '../../../src/host/plan/document.ts';
import { foldPlans } from '../../../src/host/plan/fold.ts';
import { NODE_SETTINGS_PATH } from '../../../src/kubeadm/node-settings/node-settings.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { fakeHost } from '../../support/fake-host.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';
import { hostOf, resolve, resolved } from './support.ts';

describe('hooks of a fleet file', () => {
  it('are those of the last layer that declares them, with templates resolved', () => {
    const fleet = resolved(`baseline:
  variables: {pool: blue}
  hooks: {beforeChange: {command: [/usr/local/bin/drain, "{{ pool }}"], timeout: 90s}, afterChange: {command: 'restore | logger'}}
groups: [{name: edge, hooks: {afterChange: {command: []}}}]
hosts:
  - {name: a}
  - {name: b, groups: [edge], variables: {pool: green}}
  - {name: c, hooks: {beforeChange: {command: [own]}}}
`);
    expect(hostOf(fleet, 'a').hooks).toEqual({
      beforeChange: { command: ['/usr/local/bin/drain', 'blue'], timeoutSeconds: 90, layer: 'baseline' },
      afterChange: { command: ['sh', '-c', 'restore | logger'], timeoutSeconds: 120, layer: 'baseline' },
    });
    expect(hostOf(fleet, 'b').hooks).toMatchObject({ beforeChange: { command: ['/usr/local/bin/drain', 'green'] }, afterChange: null });
    expect(hostOf(fleet, 'c').hooks).toMatchObject({
      beforeChange: { command: ['own'], layer: 'host c' },
      afterChange: { layer: 'baseline' },
    });
  });

  it.each([
    ['{command: 5}', '5 is not a command'],
    ["{command: ''}", '"" is not a command'],
    ['{command: [A=1]}', 'a list is not a command'],
    ['{command: [x, 1]}', 'a list is not a command'],
    ['{command: [x], timeout: 11m}', 'must be a duration from 1s to 10m'],
    ['{timeout: 1m}', 'command'],
    ['{command: [x], when: always}', 'when'],
  ])('are refused: %s', (hook, message) => {
    const { problems } = resolve(`hosts: [{name: a, hooks: {beforeChange: ${hook}}}]\n`);
    expect(problems).toEqual([expect.stringContaining(message)]);
  });
});

describe('the command of a hook', () => {
  const operation = {
    kind: 'run-hook',
    hook: 'beforeChange',
    command: ['drain', 'x y'],
    environment: { KUBELETADM_HOST: 'a' },
    timeoutSeconds: 90,
  } as const;

  it('receives its environment as arguments of env', () => {
    const { argv, what } = runHook(operation);
    expect(argv.slice(3)).toEqual(['sh', '90', 'KUBELETADM_HOST=a', 'drain', 'x y']);
    expect(what).toBe('the hook beforeChange');
  });

  it.each([
    ['one\n\nkubeletadm-hook-ended 3\n', { exitCode: 3, timedOut: false, output: ['one'] }],
    ['kubeletadm-hook-ended 124\n', { exitCode: 124, timedOut: true, output: [] }],
    ['a\nb', { exitCode: null, timedOut: false, output: ['a', 'b'] }],
    ['kubeletadm-hook-ended 0 forged\nkubeletadm-hook-ended 2', { exitCode: 2, timedOut: false, output: [] }],
  ])('reports its end: %j', (stderr, failure) => {
    expect(readHookFailure(stderr)).toEqual(failure);
  });
});

describe('a plan with hooks', () => {
  const HOOKS: HostHooks = {
    beforeChange: { command: ['drain'], timeoutSeconds: 120, layer: 'baseline' },
    afterChange: { command: ['restore'], timeoutSeconds: 60, layer: 'group edge' },
  };
  const RESTART: Change = { kind: 'restart-unit', unit: 'kubelet', reason: 'a test' };
  const BOOKKEEPING: Change = {
    kind: 'write-file',
    path: NODE_SETTINGS_PATH,
    mode: 0o600,
    owner: 'root:root',
    content: '',
    action: 'create',
    before: null,
    reason: 'a test',
  };
  const NODE: Change = { kind: 'delete-object', ref: { apiVersion: 'v1', kind: 'Node', name: 'a' }, reason: 'a test' };
  const readSecret = async () => new Secret('unused');
  const plan = (changes: readonly Change[], deferred?: string, name = 'a') => {
    const host: HostPlan = {
      name,
      phases: [{ phase: 'kubelet-start', plan: { changes, ...(deferred === undefined ? {} : { deferred }) } }],
      own: { node: `node-${name}` },
    };
    const context = { host: fakeHost(), cluster: null, clock: fakeClock(), reporter: recordingReporter() };
    return planWithHooks(name, HOOKS, async () => ({ host, warnings: [], refusals: [], apply: async () => host }), readSecret)(context);
  };

  it('has the hooks as first and last phase, with host, node and reason', async () => {
    const { host } = await plan([RESTART]);
    expect(host.phases.map(({ phase }) => phase)).toEqual(['before-change', 'kubelet-start', 'after-change']);
    const environment = { KUBELETADM_HOST: 'a', KUBELETADM_NODE: 'node-a', KUBELETADM_REASON: 'kubelet-start' };
    expect(host.phases.map(({ plan }) => plan.changes[0])).toEqual([
      {
        kind: 'run-hook',
        hook: 'beforeChange',
        command: ['drain'],
        environment: { KUBELETADM_HOOK: 'beforeChange', ...environment },
        timeoutSeconds: 120,
        reason: 'beforeChange of baseline, time limit 120s',
      },
      RESTART,
      expect.objectContaining({ hook: 'afterChange', environment: { KUBELETADM_HOOK: 'afterChange', ...environment } }),
    ]);
  });

  it.each<[string, readonly Change[]]>([
    ['no change', []],
    ['the record of the declared settings alone', [BOOKKEEPING]],
    ['changes of API objects alone', [NODE]],
    ['the confirmation of an earlier change', [{ kind: 'confirm-commit', id: 'x', reason: 'a test' }]],
  ])('has no hooks for %s', async (_, changes) => {
    expect((await plan(changes)).host.phases.map(({ phase }) => phase)).toEqual(['kubelet-start']);
  });

  it('has hooks for phases that are planned later', async () => {
    expect((await plan([], 'waits for install')).host.phases).toHaveLength(3);
  });

  it('folds with the plans of hosts that have the same hooks and changes', async () => {
    const plans = await Promise.all(['edge-1', 'edge-2'].map((name) => plan([RESTART], undefined, name)));
    const [group, ...others] = foldPlans(plans.map(({ host }) => host));
    expect([group?.hosts, others]).toEqual([['edge-1', 'edge-2'], []]);
    expect(group?.changes[0]).toMatchObject({ environment: { KUBELETADM_HOST: '<host>', KUBELETADM_NODE: '<node>' } });
  });
});
