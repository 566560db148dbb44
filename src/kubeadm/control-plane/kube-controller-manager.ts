import type { JsonObject } from '../../base/json.ts';
import { CONTROLLER_MANAGER_CONF } from '../../kube/well-known.ts';
import { argValue } from '../config/model.ts';
import { componentCommand } from './component-command.ts';
import { certificateMounts, extraMounts, fileMount, uniqueMounts } from './host-mounts.ts';
import { kubernetesImage } from './images.ts';
import { certificateFile } from './kube-apiserver.ts';
import type { ControlPlaneNode } from './model.ts';
import { livenessProbe, type ProbeTarget, probeHost, startupProbe } from './probes.ts';
import { staticPod } from './static-pod.ts';

const PORT = 10257;

/**
 * The static Pod of kube-controller-manager.
 * @see kubeadm 1.36 phases/controlplane/manifests.go
 */
export function kubeControllerManagerPod(node: ControlPlaneNode): JsonObject {
  const { cluster, timeouts, proxyEnvironment } = node;
  const { extraArgs, extraVolumes, extraEnvs = [] } = cluster.controllerManager;
  const target: ProbeTarget = { host: probeHost(argValue(extraArgs, 'bind-address') ?? '127.0.0.1'), scheme: 'HTTPS' };
  return staticPod({
    name: 'kube-controller-manager',
    image: kubernetesImage('kube-controller-manager', cluster),
    command: componentCommand('kube-controller-manager', ownArguments(node), extraArgs),
    mounts: uniqueMounts([...certificateMounts(node), fileMount('kubeconfig', CONTROLLER_MANAGER_CONF), ...extraMounts(extraVolumes)]),
    env: [...proxyEnvironment, ...extraEnvs],
    port: PORT,
    probes: {
      livenessProbe: livenessProbe(target, '/healthz'),
      startupProbe: startupProbe(target, '/healthz', timeouts.controlPlaneComponentHealthCheck),
    },
    requests: { cpu: '200m' },
  });
}

/** Without the CA key, the certificate for signing is omitted too: the signing controller stays off. */
function ownArguments({ cluster, externalCA }: ControlPlaneNode): Readonly<Record<string, string>> {
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
