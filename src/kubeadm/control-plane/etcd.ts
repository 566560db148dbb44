import type { JsonObject } from '../../base/json.ts';
import { cleanPath } from '../../base/text/clean-path.ts';
import { ETCD_DATA_DIR } from '../../kube/well-known.ts';
import { parseGoUrlScheme } from '../../kubelet/validate/go-url.ts';
import { argValue } from '../config/model.ts';
import { joinHostPort } from '../config/rules.ts';
import { directoryMount } from './host-mounts.ts';
import { etcdImage } from './images.ts';
import type { ControlPlaneNode, EtcdMember } from './model.ts';
import { type ProbeTarget, staticPod } from './static-pod.ts';

const ETCD_CLIENT_PORT = 2379;
const ETCD_PEER_PORT = 2380;
const METRICS_PORT = 2381;

/** `https://ADDRESS:2379`: client URL of an etcd member. */
export function etcdClientUrl(address: string): string {
  return `https://${joinHostPort(address, ETCD_CLIENT_PORT)}`;
}

/** `https://ADDRESS:2380`: peer URL of an etcd member. */
export function etcdPeerUrl(address: string): string {
  return `https://${joinHostPort(address, ETCD_PEER_PORT)}`;
}

/** The loopback address in the family of the advertise address, used by the local API server to connect to etcd. */
export function localhostOf({ localAPIEndpoint }: Pick<ControlPlaneNode, 'localAPIEndpoint'>): '127.0.0.1' | '::1' {
  return localAPIEndpoint.advertiseAddress.includes(':') ? '::1' : '127.0.0.1';
}

/**
 * The static Pod of a local etcd member: the first one, or joining existing members.
 * @see kubeadm 1.36 phases/etcd/local.go
 */
export function etcdPod(node: ControlPlaneNode): JsonObject {
  const { cluster, localAPIEndpoint } = node;
  const { extraArgs, extraEnvs = [] } = cluster.etcd.local ?? {};
  return staticPod('etcd', node, {
    image: etcdImage(cluster),
    ownArgs: etcdArguments(node),
    extraArgs,
    mounts: [directoryMount('etcd-data', dataDirOf(node), false), directoryMount('etcd-certs', `${cluster.certificatesDir}/etcd`, false)],
    env: extraEnvs,
    target: metricsEndpoint(node),
    liveness: '/livez',
    readiness: '/readyz',
    startup: '/readyz',
    requests: { cpu: '100m', memory: '100Mi' },
    annotations: { 'kubeadm.kubernetes.io/etcd.advertise-client-urls': etcdClientUrl(localAPIEndpoint.advertiseAddress) },
  });
}

function etcdArguments(node: ControlPlaneNode): Readonly<Record<string, string>> {
  const { cluster, nodeName, etcdMembers } = node;
  const { advertiseAddress } = node.localAPIEndpoint;
  const localhost = localhostOf(node);
  const certificate = (file: string): string => cleanPath(`${cluster.certificatesDir}/etcd/${file}`);
  const [clientUrl, peerUrl] = [etcdClientUrl(advertiseAddress), etcdPeerUrl(advertiseAddress)];
  const members: readonly EtcdMember[] = etcdMembers ?? [{ name: nodeName, peerURL: peerUrl }];
  return {
    name: nodeName,
    'listen-client-urls': `${etcdClientUrl(localhost)},${clientUrl}`,
    'advertise-client-urls': clientUrl,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'data-dir': dataDirOf(node),
    'cert-file': certificate('server.crt'),
    'key-file': certificate('server.key'),
    'trusted-ca-file': certificate('ca.crt'),
    'client-cert-auth': 'true',
    'peer-cert-file': certificate('peer.crt'),
    'peer-key-file': certificate('peer.key'),
    'peer-trusted-ca-file': certificate('ca.crt'),
    'peer-client-cert-auth': 'true',
    'snapshot-count': '10000',
    'listen-metrics-urls': `http://${joinHostPort(localhost, METRICS_PORT)}`,
    'feature-gates': 'InitialCorruptCheck=true',
    'watch-progress-notify-interval': '5s',
    'initial-cluster': members.map(({ name, peerURL }) => `${name}=${peerURL}`).join(','),
    ...(etcdMembers === null ? {} : { 'initial-cluster-state': 'existing' }),
  };
}

function dataDirOf({ cluster }: ControlPlaneNode): string {
  return cluster.etcd.local?.dataDir ?? ETCD_DATA_DIR;
}

/** Probe endpoint of etcd: the first of `listen-metrics-urls` if the user set them. */
function metricsEndpoint(node: ControlPlaneNode): ProbeTarget {
  const usual = { host: localhostOf(node), port: METRICS_PORT, scheme: 'HTTP' } as const;
  const [url] = (argValue(node.cluster.etcd.local?.extraArgs, 'listen-metrics-urls') ?? '').split(',');
  const scheme = parseGoUrlScheme(url ?? '');
  if (!url || scheme === null) return usual;
  const { address, name, port = '' } = URL_HOST.exec(url)?.groups ?? {};
  return {
    host: address || name || usual.host,
    port: isPort(port) ? Number(port) : METRICS_PORT,
    scheme: scheme === 'https' ? 'HTTPS' : 'HTTP',
  };
}

const URL_HOST = /^[^/?#]*\/\/(?:[^/?#@]*@)*(?:\[(?<address>[^\]/?#@]*)\]|(?<name>[^:/?#@]*))(?::(?<port>[0-9]*))?(?:[/?#]|$)/;

function isPort(text: string): boolean {
  return /^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65535;
}
