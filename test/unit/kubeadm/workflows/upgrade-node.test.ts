import { describe, expect, it } from 'vitest';
import { planWorkflow } from '../../../../src/host/run-workflow.ts';
import { prepareUpgrade, type UpgradeNodeOptions, upgradeNodeWorkflow } from '../../../../src/kubeadm/workflows/upgrade/upgrade-node.ts';
import { regular } from '../../../support/host-to-join.ts';
import { cluster, contextOf, host, join, planJoin, RUN, refusalOf, upgradeOptions, useJoinWorld } from '../../../support/join-world.ts';

const UNIT = '/usr/lib/systemd/system/kubelet.service';
const OWN = '/etc/own/kubelet.yaml';
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
useJoinWorld();

const upgrade = (more: Partial<UpgradeNodeOptions> = {}) => planWorkflow(upgradeNodeWorkflow, contextOf(), upgradeOptions(more), RUN);

describe('upgrade node of a host without /var/lib/kubelet/config.yaml', () => {
  it('names the place of another --config, and writes nothing', async () => {
    host.files.set(UNIT, regular(`[Service]\nExecStart=/usr/bin/kubelet --config=${OWN}\n`));
    host.files.set(OWN, regular(`${HEADER}maxPods: 50\n`));
    const [problem] = (await refusalOf(upgrade({ settings: ['maxPods=60'] }))).problems;
    expect(problem).toMatchObject({
      code: 'FieldNotInForce',
      message: `preflight: the kubelet would not read /var/lib/kubelet/config.yaml: ${UNIT} sets --config=${OWN}`,
    });
    expect(host.performed).toEqual([]);
  });

  it('keeps the socket of the files that the kubelet reads, or of its flag', async () => {
    const socketOf = async (): Promise<string> => (await prepareUpgrade(contextOf(), upgradeOptions({}))).input.criSocket;
    host.files.set(UNIT, regular(`[Service]\nExecStart=/usr/bin/kubelet --config=${OWN} --config-dir=/etc/own/conf.d\n`));
    host.files.set(OWN, regular(`${HEADER}containerRuntimeEndpoint: unix:///run/file.sock\n`));
    expect(await socketOf()).toBe('unix:///run/file.sock');
    host.files.set('/etc/own/conf.d', { type: 'directory', mode: 0o755, owner: 'root:root' });
    host.files.set('/etc/own/conf.d/10.conf', regular(`${HEADER}containerRuntimeEndpoint: unix:///run/drop-in.sock\n`));
    expect(await socketOf()).toBe('unix:///run/drop-in.sock');
    const flag = '--container-runtime-endpoint=unix:///run/flag.sock';
    host.files.set(UNIT, regular(`[Service]\nExecStart=/usr/bin/kubelet --config=${OWN} ${flag}\n`));
    expect(await socketOf()).toBe('unix:///run/flag.sock');
  });

  it('refuses a host whose kubelet has no configuration file', async () => {
    const refusal = async () => (await refusalOf(upgrade())).problems[0];
    expect(await refusal()).toMatchObject({
      code: 'NODE_NOT_JOINED',
      message: '/etc/kubernetes/kubelet.conf does not exist: the host has not joined a cluster',
    });
    host.files.set(UNIT, regular('[Service]\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n'));
    expect(await refusal()).toMatchObject({
      message: '/var/lib/kubelet/config.yaml does not exist: the host has not joined a cluster',
    });
    host.files.set(UNIT, regular(`[Service]\nExecStart=/usr/bin/kubelet --config=${OWN}\n`));
    expect(await refusal()).toMatchObject({
      message: `${OWN}, which the command line of the kubelet names, does not exist: the host has not joined a cluster, or the file was removed`,
    });
  });

  it('refuses a kubelet with flags alone, as it would not read the file', async () => {
    host.files.set(UNIT, regular('[Service]\nExecStart=/usr/bin/kubelet --kubeconfig=/etc/own/kubeconfig\n'));
    host.files.set('/etc/own/kubeconfig', regular(''));
    expect((await refusalOf(upgrade())).problems[0]).toMatchObject({
      code: 'FieldNotInForce',
      message: 'preflight: the kubelet would not read /var/lib/kubelet/config.yaml: its unit starts it without --config',
    });
  });
});

describe('a host that has joined', () => {
  it.each([
    ['True', undefined],
    ['Unknown', true],
  ])('is down if its Node is not Ready: %s', async (status, isDown) => {
    expect((await planJoin('maxPods: 50')).isDown).toBeUndefined();
    await join('maxPods: 50');
    const ready = { status: { conditions: [{ type: 'Ready', status }] } };
    await cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'w1' }, 'merge', ready, { subresource: 'status' });
    expect([(await upgrade()).isDown, (await planJoin('maxPods: 50')).isDown]).toEqual([isDown, isDown]);
  });
});
