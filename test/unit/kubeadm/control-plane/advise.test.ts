import { describe, expect, it } from 'vitest';
import { adviseControlPlane } from '../../../../src/kubeadm/control-plane/advise.ts';
import { controlPlaneNode } from '../../../support/control-plane-node.ts';
import { initRecordings } from '../../../support/kubeadm-recordings.ts';

const CLUSTER = `
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
`;
const adviceFor = (cluster: string) =>
  adviseControlPlane(controlPlaneNode(CLUSTER + cluster)).map(({ code, message }) => `${code}: ${message}`);

describe('advice about a control plane', () => {
  it.each([
    ['featureGates: {RootlessControlPlane: true}', /^ROOTLESS_NOT_DONE: .*the control plane components run as root$/],
    ['apiServer: {extraArgs: [{name: authorization-mode, value: "Node,RBAC,Foo"}]}', /^AUTHORIZATION_MODE_UNKNOWN: .*"Foo"/],
    [
      'apiServer: {extraArgs: [{name: authorization-mode, value: RBAC}]}',
      /^AUTHORIZATION_MODE_DIFFERS: .*is RBAC, without Node\. Add Node,/,
    ],
    [
      'etcd: {local: {dataDir: /data, extraArgs: [{name: data-dir, value: /other}]}}',
      /^ETCD_DATA_DIR: .* to \/other \(data-dir\), which is not a directory of the host:/,
    ],
    [
      'scheduler: {extraVolumes: [{name: mine, hostPath: /x, mountPath: /etc/kubernetes/scheduler.conf}]}',
      /^MOUNTED_TWICE: kube-scheduler: two volumes are mounted at \/etc\/kubernetes\/scheduler\.conf,/,
    ],
    ['networking: {serviceSubnet: 192.0.2.0/24}', /^NODE_IN_SUBNET: .*192\.0\.2\.1 is inside the subnet of services \(192\.0\.2\.0\/24\)/],
    ['networking: {podSubnet: 192.0.0.0/16}', /^NODE_IN_SUBNET: .* subnet of pods/],
  ])('%s', (cluster, advice) => {
    const found = adviceFor(cluster);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(advice);
  });

  it.each([
    'apiServer: {extraArgs: [{name: authorization-mode, value: "RBAC,Node,Webhook"}]}',
    'apiServer: {extraArgs: [{name: authorization-mode, value: AlwaysAllow}]}',
    'scheduler: {extraVolumes: [{name: kubeconfig, hostPath: /x, mountPath: /etc/kubernetes/scheduler.conf}]}',
    'etcd: {local: {dataDir: /data, extraArgs: [{name: data-dir, value: /data}]}}',
  ])('has no advice for %s', (cluster) => {
    expect(adviceFor(cluster)).toEqual([]);
  });

  it.each(initRecordings())('has no advice for $name', ({ input }) => {
    expect(adviseControlPlane(controlPlaneNode(input))).toEqual([]);
  });
});
