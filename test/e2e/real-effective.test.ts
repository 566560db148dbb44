import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/kube/cluster.ts';
import { adoptCluster } from '../support/first-node.ts';
import { type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { whyNoKubelet } from '../support/real-apiserver.ts';
import { type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const missing = whyNoKubelet() ?? whyNoLabHosts();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const CONFIG = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
---
${HEADER}failCgroupV1: false
`;
const FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
kubernetesVersion: "1.36"
cluster: {kubeconfig: admin.conf}
hosts:
  - {name: node2, kubeletConfiguration: {maxPods: 82}}
`;
const RESTART = 'systemctl restart kubelet; until curl -sf -m 2 -o /dev/null http://127.0.0.1:10248/healthz; do sleep 0.2; done';
const LOCAL = '/etc/systemd/system/kubelet.service.d/20-local.conf';
const LOGIND = '/etc/systemd/logind.conf.d/99-unattended.conf';

/** Hosts whose administrators start the kubelet in their own way. */
describe.skipIf(requirement('kubelets that read other files', missing))('kubelets that read other files', () => {
  let cluster: Cluster;
  let lab: LabHosts;
  let close: RealCluster['close'] | undefined;
  let joinWords: readonly string[] = [];
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-effective-'));
  const ssh = (host: string): readonly string[] => ['--ssh-config', lab.sshConfig, '--host', host];
  const join2 = (host: string, ...more: readonly string[]) => runCommand([...joinWords, ...ssh(host), ...more]);
  const upgrade = (...more: readonly string[]) =>
    runCommand(['upgrade', 'node', '--kubeconfig', join(directory, 'admin.conf'), '--node-name', 'node2', ...ssh('node2'), ...more]);
  const fleet = (words: readonly string[], ...more: readonly string[]) =>
    runCommand([...words, '-f', join(directory, 'fleet.yaml'), '--ssh-config', lab.sshConfig, ...more], {
      env: { XDG_STATE_HOME: directory },
    });
  const explain = (...more: readonly string[]) => runCommand(['node', 'explain', 'node2', ...more, '--ssh-config', lab.sshConfig]);
  /** Digests of the files of the kubelet, and its process. */
  const state = (host: string): string =>
    lab.run(
      host,
      `find /var/lib/kubelet/*.yaml /var/lib/kubelet/*.env /etc/kubernetes /etc/default/kubelet /etc/systemd/system /usr/lib/systemd/system/kubelet.service* -type f -exec sha256sum {} + | sort; systemctl show kubelet -p MainPID`,
    );
  const extraArgs = (args: string): void => {
    lab.run('node2', `echo 'KUBELET_EXTRA_ARGS=${args}' >/etc/default/kubelet; ${RESTART}`);
  };
  /** The digest of the files that the kubelet of node2 reads, as `fleet status` shows it. */
  const shownHash = async (): Promise<string> => {
    const { code, stdout, stderr } = await fleet(['fleet', 'status'], '-o', 'json');
    expect(code, stderr).toBe(0);
    return stdout;
  };

  beforeAll(async () => {
    ({ cluster, lab, close } = await startRealCluster(3, directory, CONFIG));
    writeFileSync(join(directory, 'fleet.yaml'), FLEET);
    joinWords = await adoptCluster(directory);
    const first = await runCommand([...joinWords, ...ssh('node1')]);
    expect(first.code, first.stderr).toBe(0);
    const joined = await join2('node2');
    expect(joined.code, joined.stderr).toBe(0);
  }, 900_000);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  describe('a change that would not be in force is refused before anything is written', () => {
    const refused = async (cause: RegExp): Promise<void> => {
      const before = state('node2');
      const node = await upgrade('--set', 'maxPods=81');
      expect([node.code, node.stderr]).toEqual([3, expect.stringMatching(cause)]);
      expect(node.stderr).toContain('[FieldNotInForce]');
      const all = await fleet(['apply'], '--yes');
      expect(all.code, all.stderr).not.toBe(0);
      expect(all.stderr).toMatch(cause);
      expect(state('node2')).toBe(before);
    };

    it('by another --config', async () => {
      const first = await shownHash();
      lab.run('node2', `(cat /var/lib/kubelet/config.yaml; echo 'maxPods: 78') >/etc/kubernetes/my.yaml`);
      extraArgs('--config=/etc/kubernetes/my.yaml');
      await refused(/KUBELET_EXTRA_ARGS in \/etc\/default\/kubelet sets --config=\/etc\/kubernetes\/my\.yaml/);
      expect(await shownHash()).not.toBe(first);
      expect(await shownHash()).toContain(lab.run('node2', 'sha256sum /etc/kubernetes/my.yaml').slice(0, 12));
    });

    it('by a file of another --config-dir', async () => {
      lab.run(
        'node2',
        `mkdir -p /etc/kubernetes/own.d; printf '${HEADER.replaceAll('\n', '\\n')}maxPods: 60\\n' >/etc/kubernetes/own.d/90-own.conf`,
      );
      extraArgs('--config-dir=/etc/kubernetes/own.d');
      await refused(/maxPods would have no effect: .*\/etc\/kubernetes\/own\.d\/90-own\.conf/);
      extraArgs('');
    });
  });

  it('a drop-in that the kubelet has not read is shown as pending', async () => {
    lab.run(
      'node2',
      `printf '[Service]\\nEnvironment="KUBELET_EXTRA_ARGS=--max-pods=50"\\n' >${LOCAL}; rm /etc/default/kubelet; systemctl daemon-reload`,
    );
    writeFileSync(join(directory, 'fleet.yaml'), FLEET.replace(', kubeletConfiguration: {maxPods: 82}', ''));
    const drift = await fleet(['fleet', 'drift']);
    expect(drift.stdout, drift.stderr).toMatch(/--max-pods=50/);
    const { stdout, stderr } = await explain();
    expect(stdout, stderr).toMatch(/--max-pods=50.*restart the kubelet/);
    const planned = await upgrade('--dry-run');
    expect(planned.stdout, planned.stderr).toMatch(
      /maxPods: 110 → 50 .*\n.*restart kubelet: the command line of the kubelet changed .*--max-pods=50.*20-local\.conf/,
    );
    lab.run('node2', `rm ${LOCAL}; echo KUBELET_EXTRA_ARGS= >/etc/default/kubelet; systemctl daemon-reload; ${RESTART}`);
  });

  describe('shutdownGracePeriod with a logind that delays a shutdown by less', () => {
    const fields = ['--set', 'shutdownGracePeriod=60s', '--set', 'shutdownGracePeriodCriticalPods=30s'];
    const allow = ['--allow', 'unsafe'];

    it('is refused before the change', async () => {
      lab.run(
        'node2',
        `mkdir -p $(dirname ${LOGIND}); printf '[Login]\\nInhibitDelayMaxSec=30\\n' >${LOGIND}; systemctl restart systemd-logind`,
      );
      const before = state('node2');
      const { code, stderr } = await upgrade(...fields, ...allow);
      expect([code, stderr]).toEqual([3, expect.stringMatching(/99-unattended\.conf limits the delay of a shutdown/)]);
      expect(state('node2')).toBe(before);
    });

    it('is rolled back if the kubelet cannot change the delay', async () => {
      const logindFiles = '/etc/systemd/logind.conf.d';
      lab.run('node2', `rm ${LOGIND}; systemctl restart systemd-logind; mount --bind -o ro ${logindFiles} ${logindFiles}`);
      const { code, stderr } = await upgrade(...fields, ...allow);
      lab.run('node2', `umount ${logindFiles}`);
      expect([code, stderr]).toEqual([5, expect.stringMatching(/shutdownGracePeriod \(60 s\) is not in force.*\[SHUTDOWN_NOT_DELAYED\]/)]);
      expect(lab.run('node2', 'cat /var/lib/kubelet/config.yaml')).toContain('shutdownGracePeriod: 0s');
    });

    it('is confirmed with the lock', async () => {
      const { code, stderr } = await upgrade(...fields, ...allow);
      expect(code, stderr).toBe(0);
      expect(lab.run('node2', 'systemd-inhibit --list --no-pager')).toMatch(/kubelet.*shutdown/);
    });
  });

  it('node explain takes no process of its own for the kubelet', async () => {
    const seen = async (state: RegExp): Promise<void> => {
      for (let i = 0; i < 12; i++) {
        const { code, stdout, stderr } = await explain();
        expect(code, stderr).toBe(0);
        expect(stdout).not.toContain('--version=true');
        expect(stdout).toMatch(state);
        expect(stdout + stderr).not.toContain('restart the kubelet');
      }
    };
    lab.run('node2', 'systemctl stop kubelet');
    await seen(/^node2: kubelet v1\.36\.2, not running \(inactive\)$/m);
    lab.run('node2', 'echo KUBELET_EXTRA_ARGS=--no-such-flag >/etc/default/kubelet; systemctl start kubelet');
    // Between two crashes, its process may be seen for a moment.
    await seen(
      /^node2: kubelet v1\.36\.2, (?:not running \((?:crashed|starting), \d+ restarts?\)|running as process \d+ since \S+, health: crashed, \d+ restarts?)$/m,
    );
    extraArgs('');
  }, 300_000);

  it('a new host without a file of its configuration is refused before anything is written', async () => {
    const map = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubelet-config' } as const;
    const { data = {} } = ((await cluster.get(map)) ?? {}) as { readonly data?: Readonly<Record<string, string>> };
    await cluster.patch(map, 'merge', { data: { kubelet: `${data.kubelet}resolvConf: /etc/kubernetes/resolv.conf\n` } });
    const { code, stderr } = await join2('node3');
    await cluster.patch(map, 'merge', { data: { kubelet: data.kubelet ?? '' } });
    expect([code, stderr]).toEqual([3, expect.stringMatching(/\/etc\/kubernetes\/resolv\.conf.*\[ConfigOnHost\]/)]);
    expect(lab.run('node3', 'ls /etc/kubernetes 2>/dev/null || true')).toBe('');
  });

  it("a takeover of the administrator's unit keeps its flags, unless they are dropped by name", async () => {
    const joined = await join2('node3');
    expect(joined.code, joined.stderr).toBe(0);
    const address = lab.address('node3').replace(/\d+$/, '113');
    lab.run('node3', ownUnit(address));
    const shown = await runCommand(['node', 'explain', 'node3', '--takeover', '--ssh-config', lab.sshConfig]);
    expect(shown.stdout, shown.stderr).toContain('/opt/bin/kubelet');
    expect(shown.stdout).toMatch(
      new RegExp(`--node-ip=${address} .*kept as node setting, unless dropped by --kubelet-extra-args node-ip-`),
    );
    // The administrator's file is a copy of config.yaml: no effective value changes.
    expect(shown.stdout).not.toContain('no longer read');
    const again = ['--ignore-preflight-errors', 'NodeExists'];
    const before = state('node3');
    const dropped = await join2('node3', ...again, '--kubelet-extra-args', 'node-ip-');
    expect(dropped.code, dropped.stderr).toBe(3);
    expect(dropped.stderr).toMatch(/--node-ip: \S+ → unset \(drain\).*\[IMPACT_NOT_ALLOWED\]/);
    expect(dropped.stderr).not.toMatch(/--hostname-override: .* → unset/);
    expect(state('node3')).toBe(before);
    const kept = await join2('node3', ...again);
    expect(kept.code, kept.stderr).toBe(0);
    const running = lab.run('node3', 'tr "\\0" " " </proc/$(pidof kubelet)/cmdline');
    expect(running).toMatch(/^\/opt\/bin\/kubelet /);
    for (const flag of [`--node-ip=${address}`, '--hostname-override=node3', '--config=/var/lib/kubelet/config.yaml'])
      expect(running).toContain(flag);
    const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'node3' });
    expect(JSON.stringify(node?.status)).toContain(`{"type":"InternalIP","address":"${address}"}`);
    const repeated = await join2('node3', ...again, '--dry-run');
    expect(repeated.code, repeated.stderr).toBe(0);
    expect(repeated.stdout).not.toContain('node-ip');
    const removed = await join2('node3', ...again, '--kubelet-extra-args', 'node-ip-', '--allow', 'drain');
    expect(removed.code, removed.stderr).toBe(0);
    expect(lab.run('node3', 'tr "\\0" " " </proc/$(pidof kubelet)/cmdline')).not.toContain('--node-ip');
  });
});

/** The layout of an administrator: own unit, environment file, kubelet outside the PATH, second address. */
function ownUnit(address: string): string {
  const flags = [
    ...['--kubeconfig=/etc/kubernetes/kubelet.conf', '--config=/etc/kubernetes/kubelet-config.yaml'],
    ...[`--node-ip=${address}`, '--hostname-override=node3'],
  ];
  return `
set -e
ip address add ${address}/24 dev eth0
systemctl stop kubelet
mkdir -p /opt/bin && mv /usr/bin/kubelet /opt/bin/
cp /var/lib/kubelet/config.yaml /etc/kubernetes/kubelet-config.yaml
rm -rf /etc/systemd/system/kubelet.service* /usr/lib/systemd/system/kubelet.service*
printf '%s\\n' 'KUBELET_ARGS=${flags.join(' ')}' >/etc/kubernetes/kubelet.env
printf '[Service]\\nEnvironmentFile=/etc/kubernetes/kubelet.env\\nExecStart=/opt/bin/kubelet $KUBELET_ARGS\\nRestart=always\\n[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/kubelet.service
systemctl daemon-reload && systemctl enable -q kubelet
${RESTART}`;
}
