import type { Arg } from '../../base/arg.ts';
import type { JsonObject } from '../../base/json.ts';
import { cleanPath } from '../../base/text/clean-path.ts';
import { CONTROLLER_MANAGER_CONF, SCHEDULER_CONF } from '../../kube/well-known.ts';
import { argValue } from '../config/model.ts';
import { joinHostPort } from '../config/rules.ts';
import { etcdClientUrl, localhostOf } from './etcd.ts';
import { certificateMounts, externalEtcdMounts, extraMounts, kubeconfigMount, uniqueMounts } from './host-mounts.ts';
import { kubernetesImage } from './images.ts';
import type { ControlPlaneNode } from './model.ts';
import { type ProbeTarget, staticPod } from './static-pod.ts';

/**
 * The static Pods of the components of Kubernetes.
 * @see kubeadm 1.36 phases/controlplane/manifests.go
 */

export function kubeApiserverPod(node: ControlPlaneNode): JsonObject {
  const { cluster, localAPIEndpoint, proxyEnvironment } = node;
  const { advertiseAddress, bindPort } = localAPIEndpoint;
  const { external } = cluster.etcd;
  const { extraArgs, extraVolumes, extraEnvs = [] } = cluster.apiServer;
  return staticPod('kube-apiserver', node, {
    image: kubernetesImage('kube-apiserver', cluster),
    ownArgs: apiserverArguments(node),
    extraArgs,
    mounts: uniqueMounts([
      ...(external === undefined ? [] : externalEtcdMounts(external, cluster.certificatesDir)),
      ...certificateMounts(node),
      ...extraMounts(extraVolumes),
    ]),
    env: [...proxyEnvironment, ...extraEnvs],
    target: httpsTarget(advertiseAddress, bindPort),
    liveness: '/livez',
    readiness: '/readyz',
    startup: '/livez',
    requests: { cpu: '250m' },
    annotations: { 'kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint': joinHostPort(advertiseAddress, bindPort) },
  });
}

export function kubeControllerManagerPod(node: ControlPlaneNode): JsonObject {
  const { cluster, proxyEnvironment } = node;
  const { extraArgs, extraVolumes, extraEnvs = [] } = cluster.controllerManager;
  return staticPod('kube-controller-manager', node, {
    image: kubernetesImage('kube-controller-manager', cluster),
    ownArgs: controllerManagerArguments(node),
    extraArgs,
    mounts: uniqueMounts([...certificateMounts(node), kubeconfigMount(CONTROLLER_MANAGER_CONF), ...extraMounts(extraVolumes)]),
    env: [...proxyEnvironment, ...extraEnvs],
    target: httpsTarget(argValue(extraArgs, 'bind-address') ?? '127.0.0.1', 10257),
    liveness: '/healthz',
    startup: '/healthz',
    requests: { cpu: '200m' },
  });
}

export function kubeSchedulerPod(node: ControlPlaneNode): JsonObject {
  const { cluster, proxyEnvironment } = node;
  const { extraArgs, extraVolumes, extraEnvs = [] } = cluster.scheduler;
  return staticPod('kube-scheduler', node, {
    image: kubernetesImage('kube-scheduler', cluster),
    ownArgs: {
      'authentication-kubeconfig': SCHEDULER_CONF,
      'authorization-kubeconfig': SCHEDULER_CONF,
      'bind-address': '127.0.0.1',
      kubeconfig: SCHEDULER_CONF,
      'leader-elect': 'true',
    },
    extraArgs,
    mounts: uniqueMounts([kubeconfigMount(SCHEDULER_CONF), ...extraMounts(extraVolumes)]),
    env: [...proxyEnvironment, ...extraEnvs],
    target: httpsTarget(argValue(extraArgs, 'bind-address') ?? '127.0.0.1', 10259),
    liveness: '/livez',
    readiness: '/readyz',
    startup: '/livez',
    requests: { cpu: '100m' },
  });
}

/** The unspecified address is probed at that of the Pod. */
function httpsTarget(bindAddress: string, port: number): ProbeTarget {
  return { host: bindAddress === '0.0.0.0' || bindAddress === '::' ? '' : bindAddress, scheme: 'HTTPS', port };
}

function apiserverArguments(node: ControlPlaneNode): Readonly<Record<string, string>> {
  const { cluster, localAPIEndpoint } = node;
  const file = certificateFile(cluster.certificatesDir);
  return {
    'advertise-address': localAPIEndpoint.advertiseAddress,
    'allow-privileged': 'true',
    'client-ca-file': file('ca.crt'),
    'enable-admission-plugins': 'NodeRestriction',
    'enable-bootstrap-token-auth': 'true',
    'kubelet-client-certificate': file('apiserver-kubelet-client.crt'),
    'kubelet-client-key': file('apiserver-kubelet-client.key'),
    'kubelet-preferred-address-types': 'InternalIP,ExternalIP,Hostname',
    'proxy-client-cert-file': file('front-proxy-client.crt'),
    'proxy-client-key-file': file('front-proxy-client.key'),
    'requestheader-allowed-names': 'front-proxy-client',
    'requestheader-client-ca-file': file('front-proxy-ca.crt'),
    'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
    'requestheader-group-headers': 'X-Remote-Group',
    'requestheader-username-headers': 'X-Remote-User',
    'secure-port': String(localAPIEndpoint.bindPort),
    'service-account-issuer': `https://kubernetes.default.svc.${cluster.networking.dnsDomain}`,
    'service-account-key-file': file('sa.pub'),
    'service-account-signing-key-file': file('sa.key'),
    'service-cluster-ip-range': cluster.networking.serviceSubnet,
    'tls-cert-file': file('apiserver.crt'),
    'tls-private-key-file': file('apiserver.key'),
    ...etcdArguments(node),
    ...authorizationArguments(cluster.apiServer.extraArgs),
  };
}

/** Returns the path of a file below the certificates directory. */
function certificateFile(certificatesDir: string): (name: string) => string {
  return (name) => cleanPath(`${certificatesDir}/${name}`);
}

function etcdArguments(node: ControlPlaneNode): Readonly<Record<string, string>> {
  const { etcd, certificatesDir } = node.cluster;
  const { external } = etcd;
  if (external !== undefined) {
    const { endpoints = [], caFile, certFile, keyFile } = external;
    return {
      'etcd-servers': endpoints.join(','),
      ...(caFile ? { 'etcd-cafile': caFile } : {}),
      ...(certFile && keyFile ? { 'etcd-certfile': certFile, 'etcd-keyfile': keyFile } : {}),
    };
  }
  const file = certificateFile(certificatesDir);
  return {
    'etcd-servers': argValue(etcd.local?.extraArgs, 'advertise-client-urls') ?? etcdClientUrl(localhostOf(node)),
    'etcd-cafile': file('etcd/ca.crt'),
    'etcd-certfile': file('apiserver-etcd-client.crt'),
    'etcd-keyfile': file('apiserver-etcd-client.key'),
  };
}

/** An authorizer file (`authorization-config`) and a list of modes cannot be combined. */
function authorizationArguments(extraArgs: readonly Arg[] | undefined): Readonly<Record<string, string>> {
  return argValue(extraArgs, 'authorization-config') === undefined ? { 'authorization-mode': 'Node,RBAC' } : {};
}

/** Without the CA key, the certificate for signing is omitted too: the signing controller stays off. */
function controllerManagerArguments({ cluster, externalCA }: ControlPlaneNode): Readonly<Record<string, string>> {
  const { clusterName, networking } = cluster;
  const file = certificateFile(cluster.certificatesDir);
  const podNetwork = networking.podSubnet
    ? {
        'allocate-node-cidrs': 'true',
        'cluster-cidr': networking.podSubnet,
        'service-cluster-ip-range': networking.serviceSubnet,
      }
    : {};
  return {
    'authentication-kubeconfig': CONTROLLER_MANAGER_CONF,
    'authorization-kubeconfig': CONTROLLER_MANAGER_CONF,
    'bind-address': '127.0.0.1',
    'client-ca-file': file('ca.crt'),
    'cluster-name': clusterName,
    'cluster-signing-cert-file': externalCA ? '' : file('ca.crt'),
    'cluster-signing-key-file': externalCA ? '' : file('ca.key'),
    controllers: '*,bootstrapsigner,tokencleaner',
    kubeconfig: CONTROLLER_MANAGER_CONF,
    'leader-elect': 'true',
    'requestheader-client-ca-file': file('front-proxy-ca.crt'),
    'root-ca-file': file('ca.crt'),
    'service-account-private-key-file': file('sa.key'),
    'use-service-account-credentials': 'true',
    ...podNetwork,
  };
}
