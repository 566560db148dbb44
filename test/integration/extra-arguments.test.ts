import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-arguments-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const FILE = join(directory, 'kubeadm.yaml');

async function validate(text: string, ...options: readonly string[]) {
  writeFileSync(FILE, text);
  const { code, stdout, stderr } = await runCommand(['config', 'validate', FILE, ...options]);
  return { code, stdout, lines: stderr.replaceAll(FILE, 'F').trimEnd().split('\n') };
}

const V1BETA4 = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  kubeletExtraArgs:
  - name: network-plugin
    value: cni
  - name: cloud-provider
    value: aws
  - name: max-pods
    value: lots
  - name: node_ip
    value: 192.0.2.10
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
apiServer:
  extraArgs:
  - name: audit-log-path
    value: /var/log/audit.log
  - name: cloud-provider
    value: aws
etcd:
  local:
    extraArgs:
    - name: quota-backend-bytes
      value: 8Gi
`;

const V1BETA3 = `apiVersion: kubeadm.k8s.io/v1beta3
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
scheduler:
  extraArgs:
    leader-elect: "true"
    adress: 127.0.0.1
controllerManager:
  extraArgs:
    node-cidr-mask-size: "/24"
`;

describe('config validate: extra arguments', () => {
  it('names file, line and column of an argument with which a component exits', async () => {
    const { code, lines } = await validate(V1BETA4);
    expect(code).toBe(2);
    expect(lines).toEqual([
      'F:5:11 nodeRegistration.kubeletExtraArgs[0].name: a 1.36 kubelet has no flag --network-plugin: the flag was removed in 1.24. Remove the flag. [KUBELET_FLAG_UNKNOWN]',
      "F:8:12 nodeRegistration.kubeletExtraArgs[1].value: a 1.36 kubelet has no in-tree cloud provider aws: 1.26 was the last. Use cloud-provider 'external' with a cloud controller manager. [CLOUD_PROVIDER_GONE]",
      'F:10:12 nodeRegistration.kubeletExtraArgs[2].value: --max-pods of a 1.36 kubelet expects an integer, not "lots". Correct the value. [FLAG_INVALID_VALUE]',
      'F:21:11 apiServer.extraArgs[1].name: kube-apiserver 1.36 has no flag --cloud-provider, which was removed after 1.21: the component exits at startup. Remove the argument. [FLAG_UNKNOWN]',
      'F:27:14 etcd.local.extraArgs[0].value: --quota-backend-bytes of etcd 3.6 expects an integer, not "8Gi": the component exits at startup. Correct the value. [FLAG_INVALID_VALUE]',
    ]);
  });

  it('reads the arguments of v1beta3', async () => {
    const { code, lines } = await validate(V1BETA3);
    expect(code).toBe(2);
    expect(lines.filter((line) => line.includes('[FLAG_'))).toEqual([
      'F:7:13 scheduler.extraArgs.adress: kube-scheduler 1.36 has no flag --adress: the component exits at startup. Remove the argument, or correct its name. [FLAG_UNKNOWN]',
      'F:10:26 controllerManager.extraArgs.node-cidr-mask-size: --node-cidr-mask-size of kube-controller-manager 1.36 expects an integer, not "/24": the component exits at startup. Correct the value. [FLAG_INVALID_VALUE]',
    ]);
  });

  it('only warns as kubeadm, which does not check arguments', async () => {
    writeFileSync(FILE, V1BETA4);
    const { code, stderr } = await runCommand(['config', 'validate', '--config', FILE], { env: { KUBELETADM_PROGRAM_NAME: 'kubeadm' } });
    expect([code, stderr]).toEqual([0, expect.stringContaining('kube-apiserver 1.36 has no flag --cloud-provider')]);
  });

  it('only warns about flags of a kubelet that may be older than the cluster', async () => {
    const join = `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "192.0.2.1:6443", unsafeSkipCAVerification: true}}
nodeRegistration: {kubeletExtraArgs: [{name: pod-infra-container-image, value: a}, {name: nothing, value: b}]}
`;
    expect((await validate(join)).code).toBe(0);
    const { code, lines } = await validate(join, '--kubernetes-version', '1.36');
    expect([code, lines.filter((line) => line.includes('--nothing'))]).toEqual([
      2,
      [expect.stringContaining('a 1.36 kubelet has no flag --nothing')],
    ]);
  });
});

describe('init: extra arguments', () => {
  const init = async (...options: readonly string[]) => {
    const text = V1BETA4.replace(/^ {2}- name: (?:network-plugin|cloud-provider|max-pods)\n {4}value: (?:cni|aws|lots)\n/gm, '');
    writeFileSync(FILE, `${text}scheduler: {extraArgs: [{name: adress, value: a}]}\nencryptionAlgorithm: ECDSA-P256\n`);
    const argv = ['init', '--config', FILE, '--rootfs', join(directory, 'root'), '--dry-run', '--node-name', 'cp-1', ...options];
    const { code, stderr } = await runCommand(argv);
    return {
      code,
      lines: stderr
        .replaceAll(FILE, 'F')
        .split('\n')
        .filter((line) => line.includes('[ComponentArguments]')),
    };
  };

  it('refuses an argument with which a component exits, with its position', async () => {
    const { code, lines } = await init();
    expect(code).toBe(3);
    expect(lines.map((line) => line.replace(/^.*?preflight: /, ''))).toEqual([
      'F:20:32 scheduler.extraArgs[0].name: kube-scheduler 1.36 has no flag --adress: the component exits at startup. Remove the argument, or correct its name. To continue anyway, use --ignore-preflight-errors=ComponentArguments. [ComponentArguments]',
      'F:19:14 etcd.local.extraArgs[0].value: --quota-backend-bytes of etcd 3.6 expects an integer, not "8Gi": the component exits at startup. Correct the value. To continue anyway, use --ignore-preflight-errors=ComponentArguments. [ComponentArguments]',
    ]);
  });

  it('continues with --ignore-preflight-errors', async () => {
    const { code, lines } = await init('--ignore-preflight-errors=ComponentArguments');
    expect([code, lines.length]).toEqual([0, 2]);
  });
});
