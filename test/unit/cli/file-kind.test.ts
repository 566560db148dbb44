import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-kinds-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Runs a command with a file, which is `FILE` in the result. */
async function runWith(command: string, text: string): Promise<string> {
  const file = join(directory, 'file');
  writeFileSync(file, text);
  const { code, stderr } = await runCommand([...command.split(' '), file], { env: { HOME: directory } });
  expect(code).toBe(2);
  return stderr.replaceAll(file, 'FILE');
}

const documentOf = (apiVersion: string, kind: string): string => `apiVersion: ${apiVersion}\nkind: ${kind}\n`;

const FLEET =
  'The file is a fleet file: validate it with kubeletadm validate FILE, apply it with kubeletadm apply -f FILE. [CONFIG_UNKNOWN_KIND]\n';
const KUBEADM = 'Validate the file with kubeletadm validate FILE, and pass it to init, join, reset or upgrade with --config FILE. [';
const K0SCTL = 'The file is for k0sctl: import its hosts with kubeletadm fleet init --from-k0sctl FILE. [';

const INVENTORY =
  'The file looks like an Ansible inventory: import its hosts with kubeletadm fleet init -f fleet.yaml --from-ansible FILE. [CONFIG_';
const SSH = 'The file looks like an ssh_config: import its hosts with kubeletadm fleet init -f fleet.yaml --from-ssh-config FILE. [CONFIG_';
const FLAGS =
  'The file looks like a file with kubelet flags: convert them with kubeletadm config migrate CONFIG --flags FILE --from 1.X --to 1.Y. [CONFIG_';
const UNIT =
  'The file looks like a systemd unit or drop-in: convert its kubelet flags with kubeletadm config migrate CONFIG --flags FILE --from 1.X --to 1.Y. [CONFIG_';

it('an overlay for ConfigMaps gets the hint of dynamic assign', async () => {
  expect(await runWith('fleet validate -f', documentOf('kubeletadm.dev/v1alpha1', 'KubeletConfigurationOverlay'))).toContain(
    'Validate the file with kubeletadm validate FILE, and pass it to dynamic assign with --file FILE. [CONFIG_UNKNOWN_KIND]',
  );
});

describe('a file of another format', () => {
  const commands = ['config validate', 'fleet validate -f', 'init --config', 'plan -f', 'reset --config'];
  it.each<[string, string, string]>([
    ['an inventory', '[kube_control_plane]\ncp1 ansible_host=192.0.2.10\n\n[kube_node]\nw1\n', INVENTORY],
    ['an inventory of names', '# nodes\n[masters]\ncp1\ncp2\n', INVENTORY],
    ['an inventory with variables', '[all:vars]\nansible_user = ops\n', INVENTORY],
    ['an inventory without groups', 'cp1 ansible_host=192.0.2.10\n', INVENTORY],
    ['an inventory in YAML', 'all:\n  children:\n    kube_node:\n      hosts: {w1: {ansible_host: 192.0.2.11}}\n', INVENTORY],
    ['an inventory in YAML with a comment', '---\n# nodes\nworkers:\n  hosts:\n    w1:\n', INVENTORY],
    ['an ssh_config', 'Host cp1 cp1.example\n  HostName 192.0.2.10\n\nHost *\n  User ops\n', SSH],
    ['an ssh_config with =', 'Host cp1\n\tHostName=192.0.2.10\n', SSH],
    ['an ssh_config that begins with options', 'User ops\nMatch host cp1\nPort 2222\n', SSH],
    ['kubeadm-flags.env', 'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.9"\n', FLAGS],
    ['the defaults of a package', 'KUBELET_EXTRA_ARGS=--node-ip=192.0.2.9\n', FLAGS],
    ['the environment of kubespray', 'KUBE_LOG_LEVEL="--v=2"\nKUBELET_ADDRESS="--node-ip=192.0.2.9"\n', FLAGS],
    ['a unit', '# kubelet\n[Unit]\nDescription=kubelet\n[Service]\nExecStart=/usr/bin/kubelet\n', UNIT],
    ['a drop-in', '[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--max-pods=60"\n', UNIT],
  ])('%s gets the hint of its command', async (_, text, hint) => {
    for (const command of commands) {
      const printed = await runWith(command, text);
      expect(printed, command).toContain(hint);
    }
    expect(await runWith('apply', text)).toContain(hint.replace('[CONFIG_', '[PLAN_INVALID]'));
  });

  it.each([
    ['TOML', '[settings.kubernetes]\nmax-pods = 60\n'],
    ['a list', '- [a, b]\n- c\n'],
    ['a block of text', 'kubelet: |\n  Host a\n x\n'],
    ['a configuration of kubeadm with a syntax error', 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n[masters]\n'],
    ['a fleet file with a syntax error', 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts: [{name: a\n'],
    ['a certificate', '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'],
    ['a document without a kind', 'networking:\n  podSubnet: 10.244.0.0/16\n'],
  ])('%s gets no hint of another command', async (_, text) => {
    expect(await runWith('config validate', text)).not.toContain('The file ');
  });

  it('names the header of fields of a kubelet without one', async () => {
    const stderr = await runWith('config validate', 'maxPods: 150\n');
    expect(stderr).toMatch(
      /^\S+:1:1 apiVersion: the document has no apiVersion\. The file looks like fields of a kubelet: begin it with .*\n$/,
    );
    expect(stderr).toContain('"kind: KubeletConfigurationOverlay"');
  });

  it('is reported once, also from standard input', async () => {
    const options = { stdin: 'all:\n  hosts:\n    w1:\n' };
    expect((await runCommand(['config', 'validate', '-'], options)).stderr).toBe(
      'standard input:1:1 apiVersion: the document has no apiVersion. The file looks like an Ansible inventory: import its hosts with kubeletadm fleet init -f fleet.yaml --from-ansible FILE. [CONFIG_MISSING_HEADER]\n',
    );
  });
});

describe('validate', () => {
  const fleet = `${documentOf('kubeletadm.dev/v1alpha1', 'Fleet')}hosts: [{name: a, address: 192.0.2.1, role: worker}]\n`;
  const kubelet = `${documentOf('kubelet.config.k8s.io/v1beta1', 'KubeletConfiguration')}maxPods: 50\n`;
  const overlay = `${documentOf('kubeletadm.dev/v1alpha1', 'KubeletConfigurationOverlay')}maxPods: 50\n`;
  const write = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };

  it.each(['validate', 'config validate'])('%s takes files of several kinds', async (command) => {
    const files = [write('fleet.yaml', fleet), write('kubelet.yaml', kubelet), write('overlay.yaml', overlay)];
    const result = await runCommand([...command.split(' '), ...files], { env: { HOME: directory } });
    expect(result).toEqual({ code: 0, stdout: files.map((file) => `${file}: ok\n`).join(''), stderr: '' });
  });

  it.each<[string, string, string]>([
    ['a fleet file', fleet.replace('role', 'rol'), 'FILE:3:39 hosts[0].rol: unknown field'],
    ['a fleet file without hosts', documentOf('kubeletadm.dev/v1alpha1', 'Fleet'), 'the fleet has no hosts'],
    ['a saved plan', '{"apiVersion": "kubeletadm.dev/v1alpha1", "kind": "FleetPlan"}', 'FILE is not a valid saved plan: id: '],
    ['a KubeletConfiguration', kubelet.replace('50', 'many'), 'FILE:3:10 maxPods: '],
    ['an overlay', overlay.replace('50', 'many'), 'FILE:3:10 maxPods: '],
  ])('reports the problems of %s', async (_, text, message) => {
    expect(await runWith('validate', text)).toContain(message);
  });
});

describe('a document of another command', () => {
  it.each<[string, string, string, string]>([
    ['a fleet file', 'reset --config', documentOf('kubeletadm.dev/v1alpha1', 'Fleet'), FLEET],
    ['a fleet file as JSON', 'init --config', '{"apiVersion": "kubeletadm.dev/v1alpha1", "kind": "Fleet"}', FLEET],
    [
      'a fleet file behind another document',
      'config validate',
      `${documentOf('kubeadm.k8s.io/v1beta4', 'ResetConfiguration')}---\n${documentOf('kubeletadm.dev/v1alpha1', 'Fleet')}`,
      FLEET,
    ],
    [
      'a saved plan',
      'plan -f',
      '{"apiVersion": "kubeletadm.dev/v1alpha1", "kind": "FleetPlan"}',
      'The file is a saved plan: show it with kubeletadm plan show FILE, apply it with kubeletadm apply FILE. [CONFIG_UNKNOWN_KIND]\n',
    ],
    ['a configuration of kubeadm', 'fleet validate -f', documentOf('kubeadm.k8s.io/v1beta4', 'InitConfiguration'), KUBEADM],
    ['a KubeletConfiguration', 'apply', documentOf('kubelet.config.k8s.io/v1beta1', 'KubeletConfiguration'), KUBEADM],
    ['a file of k0sctl', 'config validate', documentOf('k0sctl.k0sproject.io/v1beta1', 'Cluster'), K0SCTL],
    ['a file of k0sctl as a fleet file', 'fleet validate -f', documentOf('k0sctl.k0sproject.io/v1beta1', 'Cluster'), K0SCTL],
    [
      'a kubeconfig',
      'config validate',
      documentOf('v1', 'Config'),
      'The file is a kubeconfig: pass it with --kubeconfig FILE. [CONFIG_UNKNOWN_KIND]\n',
    ],
    [
      'a KubeletConfiguration as a file of k0sctl',
      'fleet init --from-k0sctl',
      documentOf('kubelet.config.k8s.io/v1beta1', 'KubeletConfiguration'),
      KUBEADM,
    ],
  ])('%s gets the hint of its command: %s', async (_, command, text, hint) => {
    expect(await runWith(command, text)).toContain(hint);
  });

  it('keeps the hint of its reader', async () => {
    expect(await runWith('apply', '{"apiVersion": "kubeletadm.dev/v1alpha1", "kind": "FleetPlan"}')).toContain(
      'Create a plan with kubeletadm plan --out FILE. [PLAN_INVALID]',
    );
    expect(await runWith('apply', documentOf('kubeletadm.dev/v1alpha1', 'Fleet'))).toContain(
      'Apply the fleet file with kubeletadm apply -f FILE. [',
    );
    expect(await runWith('fleet init --from-k0sctl', documentOf('k0sctl.k0sproject.io/v1beta1', 'Cluster'))).toContain(
      'Pass a k0sctl.yaml with spec.hosts. [FLEET_IMPORT_INVALID]',
    );
  });
});
