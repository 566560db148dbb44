import type { KubeObject } from '../../src/kube/object.ts';
import { kubeletConfigMap } from '../../src/kubeadm/cluster-objects/kubelet-config-map.ts';

export interface UpgradeClusterOptions {
  /** Version of the control plane and of kubeadm-config. */
  readonly version: string;
  /** Version of the API server by control plane, if it differs. */
  readonly apiServers?: Readonly<Record<string, string>>;
  /** Versions of the kubelets by Node; Nodes whose name begins with `worker` are no control planes. */
  readonly kubelets: Readonly<Record<string, string>>;
  readonly coredns?: string;
  /** Null: external etcd. */
  readonly etcd?: string | null;
  /** Unschedulable Nodes run no Job. */
  readonly schedulable?: boolean;
}

const KUBE_SYSTEM = 'kube-system';

/** The objects of a cluster that kubeadm reads before an upgrade. */
export function upgradeCluster(options: UpgradeClusterOptions): readonly KubeObject[] {
  const { version, apiServers = {}, kubelets, coredns = 'v1.13.1', etcd = '3.6.6-0', schedulable = true } = options;
  const names = Object.keys(kubelets);
  const controlPlanes = names.filter((name) => !name.startsWith('worker'));
  return [
    account('default'),
    ...names.map((name) => node(name, { version: kubelets[name] ?? '', schedulable })),
    ...controlPlanes.flatMap((name) => [
      staticPod('kube-apiserver', name, apiServers[name] ?? version),
      staticPod('kube-controller-manager', name, version),
      staticPod('kube-scheduler', name, version),
      ...(etcd === null ? [] : [staticPod('etcd', name, etcd)]),
    ]),
    deployment(coredns),
    configMap('coredns', { Corefile: '.:53 {\n    errors\n    forward . /etc/resolv.conf\n}\n' }),
    configMap('kubeadm-config', {
      ClusterConfiguration: `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: ${version}\nclusterName: kubernetes\n`,
    }),
    kubeletConfigMap('kubelet-config', 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 60\n', true),
    configMap('kube-proxy', {
      'config.conf': 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n',
    }),
  ];
}

function account(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: KUBE_SYSTEM, name } };
}

function node(name: string, { version, schedulable }: { readonly version: string; readonly schedulable: boolean }): KubeObject {
  const labels = { 'kubernetes.io/hostname': name, ...(name.startsWith('worker') ? {} : { 'node-role.kubernetes.io/control-plane': '' }) };
  const nodeInfo = Object.fromEntries(
    [
      'architecture',
      'bootID',
      'containerRuntimeVersion',
      'kernelVersion',
      'kubeProxyVersion',
      'machineID',
      'operatingSystem',
      'osImage',
      'systemUUID',
    ].map((field) => [field, '']),
  );
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels, annotations: { 'kubeadm.alpha.kubernetes.io/cri-socket': 'unix:///run/containerd/containerd.sock' } },
    spec: { unschedulable: !schedulable },
    status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { ...nodeInfo, kubeletVersion: version } },
  };
}

function staticPod(component: string, nodeName: string, version: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace: KUBE_SYSTEM,
      name: `${component}-${nodeName}`,
      labels: { component, tier: 'control-plane' },
      annotations: { 'kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint': '10.0.0.11:6443' },
    },
    spec: { nodeName, hostNetwork: true, containers: [{ name: component, image: `registry.k8s.io/${component}:${version}` }] },
  };
}

function deployment(version: string): KubeObject {
  const labels = { 'k8s-app': 'kube-dns' };
  const spec = { containers: [{ name: 'coredns', image: `registry.k8s.io/coredns/coredns:${version}` }] };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace: KUBE_SYSTEM, name: 'coredns', labels },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

function configMap(name: string, data: Readonly<Record<string, string>>): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: KUBE_SYSTEM, name }, data };
}
