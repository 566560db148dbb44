import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { interrupted } from '../../src/base/errors.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { nativeCheckpointDirectory } from '../../src/dynamic/native/native-store.ts';
import { whyNoLabHosts } from '../support/lab-hosts.ts';
import { E4, scenarioTitle, withLastKnownGood } from '../support/native-scenarios/scenario.ts';
import { NATIVE_SCENARIOS } from '../support/native-scenarios/table.ts';
import { becomes, comesTo, stays } from '../support/native-subject.ts';
import { CRASHING, DYING_EARLY, GOOD, INVALID, payload, TURNING_OFF } from '../support/native-world.ts';
import { DYNAMIC_MINORS, findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { type RealNativeLab, type RealSubject, type RealSubjectOptions, startRealNative } from '../support/real-native.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const HOSTS = 8;
const binaries = findRealBinaries(DYNAMIC_MINORS);
const missing = whyNoKubelet(DYNAMIC_MINORS) ?? whyNoLabHosts();
// Kubelets mostly wait.
vi.setConfig({ maxConcurrency: HOSTS });

/** The scenarios of the stand-in kubelet, with real kubelets and a real API server. */
describe.skipIf(requirement('dynamic configuration of kubelets 1.11 to 1.23', missing))('a real kubelet 1.11 to 1.23', () => {
  let lab: RealNativeLab;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-native-'));
  beforeAll(async () => {
    if (typeof binaries === 'string') return;
    lab = await startRealNative(binaries, HOSTS);
    writeFileSync(conf(), lab.api.adminKubeconfig(), { mode: 0o600 });
  }, 900_000);
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  /** Runs `dynamic ...` like an operator. */
  const dynamic = (command: string, ...words: readonly string[]): Promise<CliResult> => {
    const onHost = ['enable', 'disable', 'inspect'].includes(command) || words.includes('--host');
    return runCommand(['dynamic', command, ...words, ...(onHost ? ['--ssh-config', lab.hosts.sshConfig] : []), '--kubeconfig', conf()]);
  };
  const conf = (): string => join(directory, 'admin.conf');
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const story = (title: string, options: RealSubjectOptions, run: (subject: RealSubject) => Promise<void>) =>
    it.concurrent(title, () => lab.lend(options, run), 900_000);
  const ready = async (s: RealSubject): Promise<void> => {
    const query = async (): Promise<unknown> => {
      const { conditions = [] } = ((await s.node()).status ?? {}) as { readonly conditions?: readonly JsonObject[] };
      return conditions.find(({ type }) => type === 'Ready')?.status;
    };
    await becomes(s, query, 'True');
  };

  story('a kubelet is enabled, brought through its states and disabled again', { isOff: true }, async (s) => {
    const node = s.nodeName;
    await ready(s);
    expect((await dynamic('status', node)).stdout).toMatch(new RegExp(`^${node} +native +off `, 'm'));
    const units = () => s.sh('cd /etc/systemd/system && find kubelet.service.d -type f | sort | xargs sha256sum');
    const before = await units();
    const enable = ['enable', node, '--dynamic-config-dir', s.directory] as const;
    const plan = await dynamic(...enable, '--dry-run', '--exit-code');
    expect(plan, plan.stderr).toMatchObject({ code: 6, stdout: expect.stringContaining(`--dynamic-config-dir=${s.directory}`) });
    const enabled = await dynamic(...enable);
    expect(enabled, enabled.stderr).toMatchObject({ code: 0 });
    expect(await dynamic(...enable)).toMatchObject({ code: 0, stdout: 'Nothing to do.\n' });
    await comesTo(s, { status: {} });
    expect((await dynamic('status', node)).stdout).toMatch(new RegExp(`^${node} +native +local `, 'm'));

    const good = await dynamic('assign', node, '--file', file(`good-${node}.yaml`, payload('maxPods: 77')));
    expect(good, good.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(`${node} trial`) });
    await comesTo(s, { pods: 77 });
    expect((await dynamic('status', node)).stdout).toMatch(new RegExp(`^${node} +native +trial `, 'm'));
    await s.passTrial();
    const [kept] = /kubeletadm-system\/node-config-\w+/.exec(good.stderr) ?? [];
    const wait = await dynamic('assign', node, '--configmap', `${kept}`, '--wait', 'good');
    expect(wait, wait.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(`${node} good`) });

    const bad = await dynamic('assign', node, '--file', file(`bad-${node}.yaml`, INVALID), '--skip-validation');
    expect(bad, bad.stderr).toMatchObject({
      code: 5,
      stderr: expect.stringContaining(`${node}: rejected: the kubelet refuses the configuration`),
    });
    const inspected = await dynamic('inspect', node);
    expect(inspected.stdout).toMatch(/starts with: last known good\n[\s\S]*\[DYNAMIC_PAYLOAD_REFUSED\]/);
    expect(inspected.stdout).toContain('kubeAPIQPS');
    await comesTo(s, { pods: 77 });

    await s.assign('missing');
    await comesTo(s, { status: expect.objectContaining({ error: E4 }) });
    expect((await dynamic('status', node)).stdout).toMatch(
      new RegExp(`^${node} +native +not-synced [\\s\\S]*${node}: the ConfigMap does not exist`, 'm'),
    );

    const reset = await dynamic('reset', node);
    expect(reset, reset.stderr).toMatchObject({ code: 0 });
    expect((await dynamic('status', node)).stdout).toMatch(new RegExp(`^${node} +native +local `, 'm'));
    const { stdout: history } = await dynamic('history', node);
    expect(
      history
        .trimEnd()
        .split('\n')
        .slice(1)
        .map((line) => line.replace(/^\S+ +/, '').replace(/-\w{10}\/.*/, '')),
    ).toEqual([
      'changed to kubeletadm-system/node-config',
      'changed to kubeletadm-system/node-config',
      'changed to the local configuration',
    ]);
    const collected = await dynamic('gc', '--host', node, '--older-than', '0s');
    expect(collected, collected.stderr).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`removed ${s.directory}/store/checkpoints/`),
    });
    const disabled = await dynamic('disable', node);
    expect(disabled, disabled.stderr).toMatchObject({ code: 0 });
    expect(await units()).toBe(before);
    await comesTo(s, { pods: 110 });
    expect(await s.sh('tr "\\0" " " < /proc/$(systemctl show kubelet -p MainPID --value)/cmdline')).not.toContain('dynamic-config-dir');
  });

  story('a crash loop is reported, becomes the last known good, and is repaired', {}, async (s) => {
    const node = s.nodeName;
    await ready(s);
    const a = await withLastKnownGood(s, GOOD);
    await s.put('c', { kubelet: CRASHING });
    const assigned = await dynamic('assign', node, '--configmap', `${s.namespace}/c`, '--skip-validation');
    expect(assigned, assigned.stderr).toMatchObject({ code: 1 });
    expect(assigned.stderr).toMatch(
      new RegExp(`${node}: looping: the kubelet started with ${s.namespace}/c/kubelet@\\d+ at \\S+ and has not reported since`),
    );
    expect((await dynamic('status', node)).stdout).toMatch(new RegExp(`^${node} +native +looping `, 'm'));
    const inspected = await dynamic('inspect', node);
    expect(inspected.code, inspected.stdout).toBe(1);
    expect(inspected.stdout).toMatch(/starts with: assigned\n/);
    expect(inspected.stdout).toMatch(/the kubelet is in a crash loop: \d+ failures in two minutes: \/nonexistent\/tls\.crt does not exist/);
    expect(inspected.stdout).toMatch(/the configuration that crashes the kubelet becomes the last known good one in [78]m/);
    const plan = await dynamic('inspect', node, '--repair', '--dry-run');
    expect(plan.stderr).toContain(`Node ${node} is still assigned ${s.namespace}/c/kubelet@`);

    await s.backdate(11);
    await comesTo(s, { lastKnownGood: expect.stringContaining('name: c\n') });
    expect((await dynamic('inspect', node)).stdout).toContain('the configuration that crashes the kubelet is already the last known good');
    const reset = await dynamic('reset', node);
    expect(reset, reset.stderr).toMatchObject({ code: 1, stderr: expect.stringContaining('a crashing kubelet never reads it') });
    expect(await s.store.read(`${s.directory}/store/meta/assigned`)).toContain('name: c\n');
    const repaired = await dynamic('inspect', node, '--repair');
    expect(repaired, repaired.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining('the kubelet is healthy again') });
    await comesTo(s, { status: {}, pods: 110 });
    expect((await dynamic('status', node)).stdout).toMatch(new RegExp(`^${node} +native +local `, 'm'));
    expect(await s.store.exists(nativeCheckpointDirectory(s.directory, s.identity(a)))).toBe(true);
  });

  story('a crash loop with a last known good is repaired', {}, async (s) => {
    const a = await withLastKnownGood(s, GOOD);
    await s.put('c', { kubelet: CRASHING });
    await s.assign('c');
    await comesTo(s, { restarts: expect.toSatisfy((count: unknown) => Number(count) > 4) }, 45);
    await s.assign('a');
    const repaired = await dynamic('inspect', s.nodeName, '--repair');
    expect(repaired, repaired.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining('the kubelet is healthy again') });
    await comesTo(s, { status: { assigned: s.at(a), active: s.at(a), lastKnownGood: s.at(a) }, pods: 77, state: 'running' });
  });

  for (const [what, text, cause] of [
    [
      'turns the feature off',
      TURNING_OFF,
      'the kubelet is started with --dynamic-config-dir, but the feature gate DynamicKubeletConfig of this flag is off',
    ],
    ['crashes it early', DYING_EARLY, 'the kubelet cannot read a quantity of its configuration'],
  ] as const)
    story(`a payload that ${what} is reported, and the kubelet recovers once it is no longer assigned`, {}, async (s) => {
      await s.put('a', { kubelet: text });
      await s.assign('a');
      await comesTo(s, { restarts: expect.toSatisfy((count: unknown) => Number(count) > 4) }, 60);
      const inspected = await dynamic('inspect', s.nodeName);
      expect(inspected.stdout).toMatch(/starts with: assigned\n/);
      expect(inspected.stdout).toContain('the kubelet is in a crash loop: ');
      expect(inspected.stdout).toContain(`: ${cause}`);
      const tooEarly = await runCommand(['dynamic', 'inspect', s.nodeName, '--repair', '--ssh-config', lab.hosts.sshConfig]);
      expect(tooEarly, tooEarly.stderr).toMatchObject({ code: 1, stderr: expect.stringContaining(`took ${s.namespace}/a/kubelet@`) });
      await s.reset();
      const repaired = await dynamic('inspect', s.nodeName, '--repair');
      expect(repaired, repaired.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining('the kubelet is healthy again') });
      await comesTo(s, { status: {}, pods: 110, state: 'running' });
    });

  story('a corrupt meta file is reported and repaired', {}, async (s) => {
    await s.kubelet.stop();
    await s.store.write(`${s.directory}/store/meta/assigned`, 'garbage: [');
    await s.kubelet.start();
    await comesTo(s, { restarts: expect.toSatisfy((count: unknown) => Number(count) > 4) });
    const inspected = await dynamic('inspect', s.nodeName);
    expect(inspected.code, inspected.stdout).toBe(1);
    expect(inspected.stdout).toMatch(/starts with: nothing[\s\S]*\[DYNAMIC_META_CORRUPT\]/);
    const repaired = await dynamic('inspect', s.nodeName, '--repair');
    expect(repaired, repaired.stderr).toMatchObject({ code: 0 });
    await comesTo(s, { status: {}, pods: 110, assigned: '', state: 'running' });
    const disabled = await dynamic('disable', s.nodeName);
    expect(disabled, disabled.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining('[DYNAMIC_STAYS_ENABLED]') });
    await stays(s, { status: {}, state: 'running' }, 0);
  });

  story('a status older than the restart for another configuration is ignored', {}, async (s) => {
    const node = s.nodeName;
    await ready(s);
    await s.put('a', { kubelet: GOOD });
    await s.assign('a');
    await comesTo(s, { pods: 77 });
    await s.put('b', { kubelet: CRASHING });
    await s.assign('b');
    await comesTo(s, { assigned: expect.stringContaining('name: b\n') });
    const assigned = await dynamic('assign', node, '--configmap', `${s.namespace}/a`);
    expect(assigned, assigned.stderr).toMatchObject({ code: 1, stderr: expect.stringContaining('and has not reported since') });
    expect(assigned.stderr).not.toContain(`${node} trial`);
    const repaired = await dynamic('inspect', node, '--repair');
    expect(repaired, repaired.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining('the kubelet is healthy again') });
    await comesTo(s, { pods: 77, state: 'running' });
    // Failures before the repair are no longer reported.
    expect((await dynamic('inspect', node)).stdout).not.toContain('[DYNAMIC_CRASH_LOOP]');
  });

  story('a torn checkpoint is named, and downloaded again', {}, async (s) => {
    const a = await s.put('a', { kubelet: GOOD });
    await s.assign('a');
    await comesTo(s, { pods: 77 });
    await s.kubelet.stop();
    const path = `${nativeCheckpointDirectory(s.directory, s.identity(a))}/kubelet`;
    await s.store.write(path, GOOD.slice(0, 30));
    await s.kubelet.start();
    await comesTo(s, { pods: 110, status: expect.objectContaining({ error: expect.stringContaining('failed to load config') }) });
    const inspected = await dynamic('inspect', s.nodeName);
    expect(inspected.stdout).toContain(`${path} differs: 30 of ${GOOD.length} bytes`);
    expect(inspected.stdout).toContain('[DYNAMIC_CHECKPOINT_TORN]');
    const repaired = await dynamic('inspect', s.nodeName, '--repair');
    expect(repaired, repaired.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining('the kubelet is healthy again') });
    await comesTo(s, { status: { assigned: s.at(a), active: s.at(a) }, pods: 77, state: 'running' });
  });

  story('an assignment that another client replaced is reported at once, and left alone', {}, async (s) => {
    const node = s.nodeName;
    await ready(s);
    await s.put('a', { kubelet: GOOD });
    await s.put('b', { kubelet: payload('maxPods: 78') });
    const waiting = dynamic('assign', node, '--configmap', `${s.namespace}/a`, '--wait', 'good', '--on-failure', 'revert');
    await comesTo(s, { pods: 77 });
    await s.assign('b');
    const replaced = await waiting;
    expect(replaced, replaced.stderr).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(
          `${node}: ${s.namespace}/b/kubelet was assigned by (?:manager \\S+ at \\S+Z|an unknown client) instead of ${s.namespace}/a/kubelet`,
        ),
      ),
    });
    await comesTo(s, { pods: 78 });
  });

  story('a rollout that was killed is reverted from another host', {}, async (s) => {
    const node = s.nodeName;
    await ready(s);
    const a = await s.put('a', { kubelet: GOOD });
    await s.assign('a');
    await comesTo(s, { pods: 77 });
    await s.put('b', { kubelet: INVALID });
    const argv = ['dynamic', 'assign', node, '--configmap', `${s.namespace}/b`, '--skip-validation', '--on-failure', 'revert'];
    const killed = new AbortController();
    const first = runCommand([...argv, '--kubeconfig', conf()], { signal: killed.signal, env: { HOME: join(directory, `home-${node}`) } });
    await becomes(s, async () => JSON.stringify((await s.spec()).configSource ?? null).includes('"b"'), true);
    killed.abort(interrupted('SIGTERM'));
    expect((await first).code).toBe(143);
    const second = await runCommand([...argv, '--kubeconfig', conf()], { env: { HOME: join(directory, `other-${node}`) } });
    expect(second, second.stderr).toMatchObject({ code: 5, stderr: expect.stringContaining('restoring the previous assignments') });
    await comesTo(s, { status: { assigned: s.at(a), active: s.at(a) }, pods: 77 });
  });

  story('an API server without the gate is found out', { isOff: true }, async (s) => {
    await ready(s);
    const at = ['--kubeconfig', file(`without-${s.nodeName}.conf`, await lab.withoutGate())];
    const kubelet = file(`kubelet-${s.nodeName}.yaml`, GOOD);
    const ssh = ['--ssh-config', lab.hosts.sshConfig];
    const enabled = await runCommand(['dynamic', 'enable', s.nodeName, ...ssh, ...at]);
    expect(enabled, enabled.stderr).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('accepted the assignment, but dropped the field spec.configSource of the Node'),
    });
    expect(await s.sh('ls /etc/systemd/system/kubelet.service.d')).toBe('10-test.conf\n');
    const assigned = await runCommand(['dynamic', 'assign', s.nodeName, '--file', kubelet, '--force', ...at]);
    expect(assigned, assigned.stderr).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('accepted the assignment, but dropped the field spec.configSource of the Node'),
    });
    expect(await s.spec()).not.toHaveProperty('configSource');
  });

  for (const scenario of NATIVE_SCENARIOS) {
    const { notReal, numbers, options } = scenario;
    const [title, what] = [scenarioTitle(scenario), `scenario ${numbers.join(', ')} with a real kubelet`];
    if (notReal === null) it.concurrent(title, () => lab.lend(options, scenario.run), 900_000);
    else it.skipIf(missing !== null || requirement(what, notReal))(title, () => undefined);
  }
});
