import type { Arg } from '../../base/arg.ts';
import type { JsonObject } from '../../base/json.ts';
import { cleanPath } from '../../base/text/clean-path.ts';
import { argValue } from '../config/model.ts';
import { joinHostPort } from '../config/rules.ts';
import { componentCommand } from './component-command.ts';
import { etcdClientUrl, localhostOf } from './etcd.ts';
import { certificateMounts, externalEtcdMounts, extraMounts, uniqueMounts } from './host-mounts.ts';
import { kubernetesImage } from './images.ts';
import type { ControlPlaneNode } from './model.ts';
import { livenessProbe, type ProbeTarget, probeHost, readinessProbe, startupProbe } from './probes.ts';
import { staticPod } from './static-pod.ts';

/**
 * The static Pod of kube-apiserver.
 * @see kubeadm 1.36 phases/controlplane/manifests.go
 */
export function kubeApiserverPod(node: ControlPlaneNode): JsonObject {
  const { cluster, localAPIEndpoint, timeouts } = node;
  const { external } = cluster.etcd;
  const { apiServer } = cluster;
  const target: ProbeTarget = { host: probeHost(localAPIEndpoint.advertiseAddress), scheme: 'HTTPS' };
  return staticPod({
    name: 'kube-apiserver',
    image: kubernetesImage('kube-apiserver', cluster),
    command: componentCommand('kube-apiserver', ownArguments(node), apiServer.extraArgs),
    mounts: uniqueMounts([
      ...(external === undefined ? [] : externalEtcdMounts(external, cluster.certificatesDir)),
      ...certificateMounts(node),
      ...extraMounts(apiServer.extraVolumes),
    ]),
    env: [...node.proxyEnvironment, ...(apiServer.extraEnvs ?? [])],
    port: localAPIEndpoint.bindPort,
    probes: {
      livenessProbe: livenessProbe(target, '/livez'),
      readinessProbe: readinessProbe(target, '/readyz'),
      startupProbe: startupProbe(target, '/livez', timeouts.controlPlaneComponentHealthCheck),
    },
    requests: { cpu: '250m' },
    annotations: {
      'kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint': joinHostPort(
        localAPIEndpoint.advertiseAddress,
        localAPIEndpoint.bindPort,
      ),
    },
  });
}

function ownArguments(node: ControlPlaneNode): Readonly<Record<string, string>> {
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
export function certificateFile(certificatesDir: string): (name: string) => string {
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
