import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../lab/api-server/pki.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { AGENT_NAMESPACE } from '../../src/kube/agent-namespace.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { agentRightsName } from '../../src/kubeadm/node-agent/agent-rights.ts';
import { RETRY_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY } from '../../src/kubelet/node-agent/agent-program.ts';
import { hashInPath, pointerFile } from '../../src/kubelet/node-agent/layout.ts';
import { storedPolicy } from '../../src/kubelet/workload/manager-states.ts';
import { OVERLAY, SCENARIOS, scenarioNode } from '../support/agent-scenarios.ts';
import { type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { whyNoKubelet } from '../support/real-apiserver.ts';
import { AGENT_BUNDLE, CGROUP_V1_CONFIG, joinForAgents, type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const missing = whyNoKubelet() ?? whyNoLabHosts();
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node1' } as const;

/**
 * Configurations that break a real kubelet, and the condition messages of the agent. The API server has no
 * route to the kubelets, as for nodes behind a firewall.
 */
const BAD: readonly [string, string, RegExp][] = [
  ['exits because a file does not exist', 'tlsCertFile: /no/cert\ntlsPrivateKeyFile: /no/key', /the kubelet exited: .*\/no\/(cert|key)/],
  ['finds its port in use', 'port: 22', /the kubelet exited: port 22 is in use by another process/],
  [
    'has another cgroup driver than its runtime',
    'cgroupDriver: systemd',
    /cgroupDriver is systemd, but the container runtime uses cgroupfs/,
  ],
  ['has no runtime at its socket', 'containerRuntimeEndpoint: unix:///run/none.sock', /the kubelet exited: .*none\.sock/],
  ['sees its disk under pressure', 'evictionHard: {nodefs.available: "99.9%"}', /the Node has DiskPressure/],
  ['sees its memory under pressure', 'evictionHard: {memory.available: "99.9%"}', /the Node has MemoryPressure/],
  [
    'no longer knows the CA of the cluster',
    'authentication: {x509: {clientCAFile: /etc/kubernetes/pki/other.crt}}',
    /no longer accepts the credential of this node: .* returned 401/,
  ],
];

/** The scenarios for which a real kubelet shows more than a stand-in. */
const SHOWN: ReadonlySet<number> = new Set([1, 14, 16, 19, 21, 22, 27, 28, 34, 35, 37]);

describe.skipIf(requirement('the agent with a real kubelet', missing))('the agent with a real kubelet', () => {
  let cluster: Cluster;
  let lab: LabHosts;
  let close: RealCluster['close'] | undefined;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-real-agent-'));
  const conf = join(directory, 'admin.conf');

  beforeAll(async () => {
    ({ cluster, lab, close } = await startRealCluster(1, directory, CGROUP_V1_CONFIG));
    await joinForAgents(lab, directory, ['node1']);
    lab.put('node1', '/etc/kubernetes/pki/other.crt', (await createCa()).certPem);
  }, 900_000);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const dynamic = (command: string, ...words: readonly string[]): Promise<CliResult> =>
    runCommand(['dynamic', command, 'node1', '--kubeconfig', conf, ...words]);
  const onHost = () => ['--ssh-config', lab.sshConfig];
  const enable = async (...words: readonly string[]): Promise<void> => {
    const enabled = await dynamic('enable', ...onHost(), '--program', AGENT_BUNDLE, '--spread', '0s', ...words);
    expect(enabled.code, enabled.stderr).toBe(0);
  };
  const units = (): string => lab.run('node1', 'cd /etc/systemd/system && find . | sort; cat kubelet.service.d/*');
  const starts = (): number => Number(lab.run('node1', 'journalctl -u kubelet -o cat --no-pager | grep -c "^Started" || true').trim());
  const condition = async (): Promise<JsonObject> => {
    const { conditions = [] } = ((await cluster.get(NODE))?.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
    return conditions.find(({ type }) => type === 'KubeletConfigOk') ?? {};
  };
  const until = async (what: string, isTrue: () => Promise<boolean>, timeoutMs = 60_000): Promise<void> => {
    for (const end = Date.now() + timeoutMs; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100)))
      if (await isTrue()) return;
    throw new Error(
      `never: ${what}; ${JSON.stringify(await condition())}\n${lab.run('node1', 'journalctl -u kubeletadm-agent -n 20 --no-pager -o cat')}`,
    );
  };
  const push = (name: string, text: string) =>
    cluster.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'kubeletadm-system' },
      data: { kubelet: text },
      immutable: true,
    });

  let before = '';
  it('is installed, and may read only the configz of its own kubelet', async () => {
    before = units();
    await enable('--trial', '15s', '--allow', 'drain');
    const role = await cluster.get({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'kubeletadm:agent:node1' });
    expect(role?.rules).toEqual([{ apiGroups: [''], resources: ['nodes/configz'], resourceNames: ['node1'], verbs: ['get'] }]);
  }, 120_000);

  it('verifies a configuration against the kubelet itself, without the API server in between', async () => {
    await expect(cluster.getRaw('/api/v1/nodes/node1/proxy/configz')).rejects.toThrow();
    await push('good', `${OVERLAY}maxPods: 55\n`);
    const good = await dynamic('assign', '--configmap', 'kubeletadm-system/good/kubelet', '--wait', 'good', '--timeout', '60s');
    expect(good.code, good.stderr).toBe(0);
    expect((await cluster.get(NODE))?.status).toMatchObject({ capacity: { pods: '55' } });
    expect((await dynamic('status')).stdout).toMatch(/^node1 +agent +good /m);
  }, 120_000);

  describe('with a policy that permits drain', () => {
    const state = '/var/lib/kubelet/cpu_manager_state';
    const policy = (): string | null => storedPolicy(lab.run('node1', `cat ${state} 2>/dev/null || true`));
    const change = 'cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n';
    const ready = (): Promise<string> => lab.query('node1', 'systemctl is-active kubelet; curl -s http://127.0.0.1:10248/healthz');

    it('restores the state file of the CPU manager in a rollback', async () => {
      const before = lab.run('node1', `stat -c '%a %U:%G' ${state}; cat ${state}`);
      expect(policy()).toBe('none');
      // The kubelet runs, and writes its own state file, until the trial detects the pressure.
      await push('static-bad', `${OVERLAY}${change}evictionHard: {memory.available: "99.9%"}\n`);
      const source = 'kubeletadm-system/static-bad/kubelet';
      expect((await dynamic('assign', '--configmap', source, '--allow-pod-loss', '--wait', 'none')).code).toBe(0);
      await until('the new kubelet wrote its state file', async () => policy() === 'static');
      await until('it is rolled back', async () => (await condition()).reason === 'FallenBack', 90_000);
      await until('the previous kubelet runs', async () => /runs the (?:last known good|local)/.test(String((await condition()).message)));
      expect(lab.run('node1', `stat -c '%a %U:%G' ${state}; cat ${state}`)).toBe(before);
      expect([await ready(), lab.run('node1', `ls ${AGENT_DIRECTORY}`)]).toEqual([
        'active\nok',
        expect.not.stringContaining('manager-states'),
      ]);
    }, 180_000);

    it('changes cpuManagerPolicy, with a new state file', async () => {
      await push('static', `${OVERLAY}${change}`);
      const done = await dynamic('assign', '--configmap', 'kubeletadm-system/static/kubelet', '--wait', 'good', '--timeout', '90s');
      expect(done.code, done.stderr).toBe(0);
      expect([policy(), await ready()]).toEqual(['static', 'active\nok']);
      const local = await dynamic('assign', '--configmap', 'kubeletadm-system/good/kubelet', '--wait', 'good', '--timeout', '90s');
      expect(local.code, local.stderr).toBe(0);
      expect([policy(), await ready()]).toEqual(['none', 'active\nok']);
    }, 240_000);
  });

  it('honours Node conditions older than a restart of the agent during a trial', async () => {
    await push('restarted', `${OVERLAY}maxPods: 56\n`);
    expect((await dynamic('assign', '--configmap', 'kubeletadm-system/restarted/kubelet')).code).toBe(0);
    lab.run('node1', 'systemctl restart kubeletadm-agent');
    await until('it is good', async () => (await condition()).reason === 'Good');
  }, 120_000);

  it('is installed with other options', async () => {
    // Longer than a kubelet needs to report pressure.
    await enable('--trial', '60s', '--allow', 'unsafe');
  }, 120_000);

  it.each(BAD)(
    'rolls back when the kubelet %s',
    async (title, text, cause) => {
      await dynamic('assign', '--configmap', 'kubeletadm-system/restarted/kubelet', '--wait', 'good', '--timeout', '60s');
      const name = title.replace(/\W+/g, '-').toLowerCase().slice(0, 60).replace(/-$/, '');
      await push(name, `${OVERLAY}${text}\n`);
      const began = Date.now();
      const bad = await dynamic(
        'assign',
        '--configmap',
        `kubeletadm-system/${name}/kubelet`,
        '--allow-pod-loss',
        '--wait',
        'good',
        '--timeout',
        '90s',
      );
      const { stdout } = await dynamic('status');
      process.stderr.write(`${title}: ${Math.round((Date.now() - began) / 100) / 10} s: ${(await condition()).message}\n`);
      expect(bad.code, bad.stderr).toBe(5);
      expect(stdout).toMatch(/^node1 +agent +(rejected|rolled-back) /m);
      expect((await condition()).message).toMatch(cause);
      expect(lab.run('node1', 'systemctl is-active kubelet; curl -s http://127.0.0.1:10248/healthz')).toBe('active\nok');
    },
    150_000,
  );

  it('rejects a change while the state file of the CPU manager is corrupt', async () => {
    await dynamic('assign', '--configmap', 'kubeletadm-system/restarted/kubelet', '--wait', 'good', '--timeout', '90s');
    const [state, had] = ['/var/lib/kubelet/cpu_manager_state', starts()];
    await push('corrupt', `${OVERLAY}maxPods: 57\n`);
    const source = ['--configmap', 'kubeletadm-system/corrupt/kubelet'];
    lab.run('node1', `cp -p ${state} ${state}.saved; sed -i 's/"checksum":/"checksum":1/' ${state}`);
    const refused = await dynamic('assign', ...source, '--wait', 'good', '--timeout', '60s');
    lab.run('node1', `mv ${state}.saved ${state}`);
    expect(refused.code, refused.stderr).toBe(5);
    expect((await condition()).message).toContain(`the state file ${state} is corrupt: the kubelet would exit at its next start`);
    expect(starts() - had).toBe(0);
    await cluster.patch(NODE, 'merge', { metadata: { annotations: { [RETRY_ANNOTATION]: 'repaired' } } });
    await until('it is good', async () => (await condition()).reason === 'Good', 90_000);
    expect(starts() - had).toBe(1);
  }, 240_000);

  describe('with a graceful shutdown', () => {
    const fields = 'shutdownGracePeriod: 60s\nshutdownGracePeriodCriticalPods: 30s\n';
    const [files, source] = ['/etc/systemd/logind.conf.d', ['--configmap', 'kubeletadm-system/shutdown/kubelet']];
    const locks = (): string => lab.run('node1', 'systemd-inhibit --list --no-pager');

    it('rolls back when the kubelet cannot take its lock', async () => {
      lab.run('node1', `mkdir -p ${files}; mount --bind -o ro ${files} ${files}`);
      await push('shutdown', `${OVERLAY}${fields}`);
      const began = Date.now();
      const { code, stderr } = await dynamic('assign', ...source, '--wait', 'good', '--timeout', '120s');
      lab.run('node1', `umount ${files}`);
      process.stderr.write(`no lock: ${Math.round((Date.now() - began) / 1000)} s: ${(await condition()).message}\n`);
      expect(code, stderr).toBe(5);
      expect((await condition()).message).toMatch(/^shutdownGracePeriod \(60 s\) is not in force: .*\(.*read-only file system/);
      expect(locks()).not.toMatch(/kubelet.*shutdown/);
    }, 180_000);

    it('is good with the lock', async () => {
      await cluster.patch(NODE, 'merge', { metadata: { annotations: { [RETRY_ANNOTATION]: 'writable' } } });
      await until('it is good', async () => (await condition()).reason === 'Good', 90_000);
      expect(locks()).toMatch(/kubelet.*shutdown/);
    }, 120_000);
  });

  const filler = `${AGENT_DIRECTORY}/filler`;
  const fill = `head -c 4000000 /dev/zero >>${filler} 2>/dev/null || true`;
  const assign = async (name: string, text: string, ...words: readonly string[]): Promise<CliResult> => {
    await push(name, `${OVERLAY}${text}\n`);
    const wait = words.length === 0 ? ['--wait', 'none'] : words;
    // The agent shall try these configurations.
    return dynamic('assign', '--configmap', `kubeletadm-system/${name}/kubelet`, '--allow-pod-loss', ...wait);
  };
  const inspect = (): Promise<CliResult> => runCommand(['dynamic', 'inspect', 'node1', '--ssh-config', lab.sshConfig]);
  const readyz = (): Promise<string> => lab.query('node1', "curl -s -w '%{http_code}' http://127.0.0.1:10246/readyz || true");
  const pointed = (): string => hashInPath(lab.run('node1', `cat ${pointerFile(AGENT_DIRECTORY)}`)) ?? '';
  const commandLine = (): string => lab.run('node1', "tr '\\0' ' ' </proc/$(systemctl show -p MainPID --value kubelet)/cmdline");
  const log = (what: string, began: number): void =>
    void process.stderr.write(`${what}: ${Math.round((Date.now() - began) / 100) / 10} s\n`);
  const runsLastKnownGood = async (): Promise<boolean> => {
    const { reason, message } = await condition();
    return reason === 'FallenBack' && /; the kubelet runs the last known good configuration$/.test(String(message));
  };

  describe('with the directory of the agent on a full file system', () => {
    /**
     * Moves the directory to a separate file system, or back. The agent is stopped meanwhile: its mounts are
     * those of its start.
     */
    const move = (step: string): string =>
      lab.run(
        'node1',
        `set -e; systemctl stop kubeletadm-agent; rm -rf /run/agent-copy; cp -a ${AGENT_DIRECTORY} /run/agent-copy
         ${step}
         cp -a /run/agent-copy/. ${AGENT_DIRECTORY}/; rm -rf /run/agent-copy; systemctl start kubeletadm-agent`,
      );
    beforeAll(async () => {
      await enable('--trial', '5s', '--allow', 'unsafe', '--keep', '0');
      move(`mount -t tmpfs -o size=1m,mode=700 tmpfs ${AGENT_DIRECTORY}`);
    }, 120_000);
    afterAll(async () => {
      lab.run('node1', 'rm -rf /run/hold /run/systemd/system/kubelet.service.d/90-full.conf; systemctl daemon-reload');
      lab.run('node1', `rm -f ${filler}`);
      move(`umount ${AGENT_DIRECTORY}; rm -rf ${AGENT_DIRECTORY}/*`);
    }, 120_000);

    it('starts no trial that it could not roll back, reports why, and starts it once space is free', async () => {
      const good = await assign('disk-a', 'maxPods: 57', '--wait', 'good', '--timeout', '60s');
      expect(good.code, good.stderr).toBe(0);
      lab.run('node1', fill);
      const [had, runs] = [starts(), pointed()];
      expect((await assign('disk-b', 'maxPods: 58')).code).toBe(0);
      const began = Date.now();
      await until('the full disk is reported', async () => (await condition()).reason === 'Unavailable');
      log('a full disk is reported after', began);
      expect(String((await condition()).message)).toMatch(/could be written\. Free disk space/);
      expect((await dynamic('status')).stdout).toMatch(/^node1 +agent +not-synced .*disk-a/m);
      expect([starts() - had, commandLine().includes(runs)]).toEqual([0, true]);
      lab.run('node1', `rm ${filler}`);
      const freed = Date.now();
      await until('it is good', async () => (await condition()).reason === 'Good' && (await dynamic('status')).stdout.includes('disk-b'));
      log('the trial is good, after the space was freed', freed);
      expect(starts() - had).toBe(1);
    }, 180_000);

    it('rolls a crash back to the last known good configuration, and reports that only once its process runs', async () => {
      const good = pointed();
      // Each start of the kubelet finds the disk full; the start with the last known good configuration is
      // delayed.
      const script = `#!/bin/sh
${fill}
grep -q ${good} ${pointerFile(AGENT_DIRECTORY)} || exit 0
while [ -e /run/hold ]; do : >/run/held; sleep 0.1; done
`;
      lab.put('node1', '/run/before-kubelet', script);
      lab.run(
        'node1',
        `mkdir -p /run/systemd/system/kubelet.service.d; : >/run/hold
         printf '[Service]\\nExecStartPre=-/run/before-kubelet\\n' >/run/systemd/system/kubelet.service.d/90-full.conf; systemctl daemon-reload`,
      );
      const had = starts();
      const messages: { readonly at: number; readonly message: string }[] = [];
      const watching = new AbortController();
      const { resourceVersion } = await cluster.list({ apiVersion: 'v1', kind: 'Node' });
      const watched = (async (): Promise<void> => {
        for await (const { object } of cluster.watch({ apiVersion: 'v1', kind: 'Node' }, { resourceVersion, signal: watching.signal })) {
          const { conditions = [] } = (object.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
          messages.push({ at: Date.now(), message: String(conditions.find(({ type }) => type === 'KubeletConfigOk')?.message) });
        }
      })().catch(() => undefined);
      const began = Date.now();
      expect((await assign('disk-crash', 'tlsCertFile: /no/cert-2\ntlsPrivateKeyFile: /no/key-2')).code).toBe(0);
      const isHeld = (): Promise<boolean> =>
        lab.query('node1', 'ls /run/held').then(
          () => true,
          () => false,
        );
      await until('the rollback starts the kubelet', isHeld);
      log('the rollback starts the kubelet after', began);
      const held = await inspect();
      expect(held.code).toBe(1);
      expect(held.stdout).toMatch(/^state: fallen-back, /m);
      expect(held.stdout).toMatch(/^runs: nothing$/m);
      expect(String((await condition()).message)).not.toMatch(/\bruns\b/);
      await lab.query('node1', `! head -c 65536 /dev/zero >${AGENT_DIRECTORY}/more; rm ${AGENT_DIRECTORY}/more`);
      const released = Date.now();
      await lab.query('node1', 'rm /run/hold');
      await until('it is rolled back', runsLastKnownGood);
      const tookMs = Date.now() - began;
      watching.abort();
      await watched;
      process.stderr.write(
        `rolled back on a full disk after ${tookMs / 1000} s (held ${(released - began) / 1000} s after the assignment), ${starts() - had} starts of the kubelet; ${(await condition()).message}\n${messages.map(({ at, message }) => `${(at - began) / 1000} ${message}`).join('\n')}\n`,
      );
      expect(tookMs).toBeLessThan(60_000);
      expect(starts() - had).toBeLessThanOrEqual(4);
      expect(messages.length).toBeGreaterThan(0);
      expect(messages.filter(({ at, message }) => at < released && /\bruns\b/.test(message))).toEqual([]);
      expect(String((await condition()).message)).toMatch(/the kubelet exited: .*\/no\/(cert|key)/);
      expect(commandLine()).toContain(good);
      expect((await dynamic('status')).stdout).toMatch(/^node1 +agent +rolled-back /m);
      expect((await inspect()).stdout).toContain(`runs: ${good.slice(0, 12)}`);
    }, 180_000);

    it('keeps the rollback over a restart of agent and kubelet', async () => {
      const [had, good] = [starts(), pointed()];
      lab.run('node1', 'systemctl restart kubeletadm-agent kubelet');
      await until('the agent runs', async () => (await readyz()).endsWith('200'));
      await until('it is still rolled back', runsLastKnownGood);
      const { code, stdout } = await inspect();
      expect(code, stdout).toBe(0);
      expect(stdout).toMatch(/^state: fallen-back, /m);
      expect(stdout).toContain(`starts with: ${good.slice(0, 12)}\nruns: ${good.slice(0, 12)}`);
      expect(starts() - had).toBe(1);
      expect((await cluster.get(NODE))?.status).toMatchObject({ capacity: { pods: '58' } });
    }, 120_000);
  });

  describe('that the API server refuses', () => {
    const journal = (): string => lab.run('node1', 'journalctl -u kubeletadm-agent -n 60 --no-pager -o cat');
    const isReadyWith = async (maxPods: string): Promise<boolean> => {
      const status = (await cluster.get(NODE))?.status ?? {};
      return (await condition()).reason === 'Good' && JSON.stringify(status).includes(`"pods":"${maxPods}"`);
    };
    const recovers = async (maxPods: string): Promise<void> => {
      const began = Date.now();
      await until('the assignment is good', () => isReadyWith(maxPods), 120_000);
      await until('the agent is ready', async () => (await readyz()).endsWith('200'));
      log('the agent recovered after', began);
      const { code, stdout } = await inspect();
      expect(code, stdout).toBe(0);
      expect(stdout).not.toContain('AGENT_REFUSED');
      expect(journal()).toContain('the API server accepts all requests of the agent again');
    };

    it('names the missing right, and recovers once the RoleBinding exists again', async () => {
      const good = await assign('rights-a', 'maxPods: 61', '--wait', 'good', '--timeout', '60s');
      expect(good.code, good.stderr).toBe(0);
      const name = agentRightsName('node1');
      const ref = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', namespace: AGENT_NAMESPACE, name };
      const binding = (await cluster.get(ref)) as KubeObject;
      await cluster.delete(ref);
      const had = starts();
      expect((await assign('rights-b', 'maxPods: 62')).code).toBe(0);
      const began = Date.now();
      await until('the agent is not ready', async () => (await readyz()).endsWith('503'));
      log('the missing right was reported after', began);
      expect(await readyz()).toMatch(/since .* does not allow the agent to read ConfigMap: .*system:node:node1/);
      expect(journal()).toMatch(/since .* does not allow the agent to read ConfigMap: .*system:node:node1/);
      await until('the Node reports it', async () => (await condition()).reason === 'Unavailable');
      const { stdout } = await dynamic('status');
      expect(stdout).toMatch(/^node1 +agent +not-synced /m);
      expect(stdout).toMatch(/kubeletadm-system\/rights-b.* cannot be read: .*system:node:node1/);
      const inspected = await inspect();
      expect(inspected.code).toBe(1);
      expect(inspected.stdout).toMatch(/does not allow the agent to read ConfigMap: .*\[AGENT_REFUSED\]/);
      expect(inspected.stdout).toContain('Create the Role and RoleBinding of the agent again: kubeletadm dynamic enable HOST');
      expect(starts() - had).toBe(0);
      const { uid, resourceVersion, creationTimestamp, managedFields, ...metadata } = binding.metadata as JsonObject;
      await cluster.create({ ...binding, metadata: { ...metadata, name } });
      await recovers('62');
    }, 240_000);

    it('names the refused certificate of the kubelet, and recovers with the command of the hint', async () => {
      const current = '/var/lib/kubelet/pki/kubelet-client-current.pem';
      const accepted = lab.run('node1', `readlink -f ${current}`).trim();
      const other = await (await createCa()).issueClient({ commonName: 'system:node:node1', organizations: ['system:nodes'] });
      lab.put('node1', '/var/lib/kubelet/pki/refused.pem', `${other.certPem}\n${other.keyPem}\n`);
      const had = starts();
      // The agent reads the certificate when it starts, and then every 30 seconds.
      lab.run('node1', `ln -sfn /var/lib/kubelet/pki/refused.pem ${current}; systemctl restart kubeletadm-agent`);
      const began = Date.now();
      try {
        expect((await assign('rights-c', 'maxPods: 63')).code).toBe(0);
        await until('the agent is not ready', async () => (await readyz()).endsWith('503'));
        log('the refused certificate was reported after', began);
        expect(await readyz()).toMatch(/since .* does not allow the agent to read Node: .*Unauthorized/);
        expect(journal()).toMatch(/since .* does not allow the agent to read Node: .*Unauthorized/);
        const inspected = await inspect();
        expect(inspected.code).toBe(1);
        expect(inspected.stdout).toMatch(/Unauthorized.*\[AGENT_REFUSED\]/);
        expect(inspected.stdout).toContain('certs renew-kubelet --force --kubeconfig admin.conf --node-name NODE');
        const { stdout } = await dynamic('status');
        expect(stdout).toMatch(/^node1 +agent +waiting /m);
        expect(stdout).toMatch(/its last report is from 20.*dynamic inspect/);
        expect(starts() - had).toBe(0);
        const on = ['--host', 'node1', '--node-name', 'node1', '--kubeconfig', conf, ...onHost()];
        const kept = await runCommand(['certs', 'renew-kubelet', ...on]);
        expect([kept.code, kept.stdout], kept.stderr).toEqual([0, 'Nothing to do.\n']);
        const renewed = await runCommand(['certs', 'renew-kubelet', '--force', ...on]);
        expect(renewed.code, renewed.stderr).toBe(0);
        await recovers('63');
      } finally {
        lab.run(
          'node1',
          `[ -e ${current} ] && [ "$(readlink ${current})" != /var/lib/kubelet/pki/refused.pem ] || ln -sfn ${accepted} ${current}`,
        );
      }
    }, 300_000);
  });

  it('is installed with a short trial', () => enable('--trial', '5s', '--allow', 'unsafe'), 120_000);

  it.each(
    SCENARIOS.filter(({ number }) => SHOWN.has(number)).map((scenario) => [`${scenario.number}. ${scenario.title}`, scenario] as const),
  )(
    'plays scenario %s',
    async (_, scenario) => {
      const node = scenarioNode({ cluster, nodeName: 'node1', until });
      await node.cleanUp();
      const had = starts();
      await scenario.play(node);
      await node.reports(scenario.status);
      expect(starts() - had).toBe(scenario.restarts);
    },
    150_000,
  );

  it('is removed; all other files are byte-for-byte identical', async () => {
    const disabled = await dynamic('disable', ...onHost());
    expect(disabled.code, disabled.stderr).toBe(0);
    expect(units()).toBe(before);
    await expect.poll(async () => (await cluster.get(NODE))?.status, { timeout: 30_000 }).toMatchObject({ capacity: { pods: '110' } });
  }, 120_000);
});
