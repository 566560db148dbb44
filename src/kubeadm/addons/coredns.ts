import type { JsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { clusterBinding, clusterRole, serviceAccountSubject } from '../cluster-objects/bootstrap-rbac.ts';
import { dnsIp } from '../config/dns-ip.ts';
import { corednsImage } from '../control-plane/images.ts';
import type { ControlPlaneNode } from '../control-plane/model.ts';
import { patchedObject } from '../patches/patched-object.ts';

const LABELS = { 'k8s-app': 'kube-dns' };
export const COREDNS_REPLICAS = 2;

export const COREFILE_KEY = 'Corefile';

export type CorednsObjects = ReturnType<typeof corednsObjects>;

/**
 * CoreDNS as kubeadm 1.36 deploys it, with the user's patches for `corednsdeployment`.
 * @throws AppError CONFIG_INVALID_SUBNET; those of `patchedObject`
 * @see kubeadm 1.36 phases/addons/dns
 */
export function corednsObjects({ cluster, patches }: Pick<ControlPlaneNode, 'cluster' | 'patches'>) {
  const { dnsDomain, serviceSubnet } = cluster.networking;
  const at = { name: 'coredns', namespace: KUBE_SYSTEM };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...at, labels: LABELS },
    spec: deploymentSpec(corednsImage(cluster)),
  };
  return {
    configMap: { apiVersion: 'v1', kind: 'ConfigMap', metadata: at, data: { [COREFILE_KEY]: corefile(dnsDomain) } },
    clusterRole: clusterRole('system:coredns', [
      watch('', ['endpoints', 'services', 'pods', 'namespaces']),
      watch('discovery.k8s.io', ['endpointslices']),
    ]),
    clusterRoleBinding: clusterBinding('system:coredns', 'system:coredns', serviceAccountSubject(at)),
    serviceAccount: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: at },
    deployment: patchedObject(deployment, patches, { kind: 'Deployment', target: 'corednsdeployment' }) as KubeObject,
    service: dnsService(dnsIp(serviceSubnet)),
  };
}

function watch(apiGroup: string, resources: readonly string[]): JsonObject {
  return { apiGroups: [apiGroup], resources, verbs: ['list', 'watch'] };
}

/** Resolves cluster names itself and forwards all others to the resolver of the host. Cluster names are not cached. */
function corefile(dnsDomain: string): string {
  return `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes ${dnsDomain} in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success ${dnsDomain}
       disable denial ${dnsDomain}
    }
    loop
    reload
    loadbalance
}
`;
}

/** Whether a Corefile is kubeadm's for some domain, so not edited. */
export function isOwnCorefile(text: string): boolean {
  return text.split('\n').some((line) => {
    const domain = /^ {4}kubernetes (\S+) in-addr\.arpa ip6\.arpa \{$/.exec(line)?.[1];
    return domain !== undefined && text === corefile(domain);
  });
}

const PORTS = { dns: 53, metrics: 9153, liveness: 8080, readiness: 8181 };

function deploymentSpec(image: string): JsonObject {
  return {
    replicas: COREDNS_REPLICAS,
    selector: { matchLabels: LABELS },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
    template: { metadata: { labels: LABELS }, spec: podSpec(image) },
  };
}

function podSpec(image: string): JsonObject {
  return {
    priorityClassName: 'system-cluster-critical',
    serviceAccountName: 'coredns',
    affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [APART] } },
    tolerations: [
      { key: 'CriticalAddonsOnly', operator: 'Exists' },
      { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' },
    ],
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    containers: [container(image)],
    dnsPolicy: 'Default',
    volumes: [{ name: 'config-volume', configMap: { name: 'coredns', items: [{ key: COREFILE_KEY, path: COREFILE_KEY }] } }],
  };
}

const APART: JsonObject = {
  weight: 100,
  podAffinityTerm: {
    labelSelector: { matchExpressions: [{ key: 'k8s-app', operator: 'In', values: ['kube-dns'] }] },
    topologyKey: 'kubernetes.io/hostname',
  },
};

function container(image: string): JsonObject {
  return {
    name: 'coredns',
    image,
    imagePullPolicy: 'IfNotPresent',
    resources: { limits: { memory: '170Mi' }, requests: { cpu: '100m', memory: '70Mi' } },
    args: ['-conf', '/etc/coredns/Corefile'],
    volumeMounts: [{ name: 'config-volume', mountPath: '/etc/coredns', readOnly: true }],
    ports: [
      { containerPort: PORTS.dns, name: 'dns', protocol: 'UDP' },
      { containerPort: PORTS.dns, name: 'dns-tcp', protocol: 'TCP' },
      { containerPort: PORTS.metrics, name: 'metrics', protocol: 'TCP' },
      { containerPort: PORTS.liveness, name: 'liveness-probe', protocol: 'TCP' },
      { containerPort: PORTS.readiness, name: 'readiness-probe', protocol: 'TCP' },
    ],
    livenessProbe: {
      httpGet: { path: '/health', port: 'liveness-probe', scheme: 'HTTP' },
      initialDelaySeconds: 60,
      timeoutSeconds: 5,
      successThreshold: 1,
      failureThreshold: 5,
    },
    readinessProbe: { httpGet: { path: '/ready', port: 'readiness-probe', scheme: 'HTTP' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
      readOnlyRootFilesystem: true,
    },
  };
}

/** Has the clusterIP that kubelets configure as resolver of Pods. */
function dnsService(clusterIP: string): KubeObject {
  const port = (name: string, number: number, protocol = 'TCP'): JsonObject => ({ name, port: number, protocol, targetPort: number });
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: 'kube-dns',
      namespace: KUBE_SYSTEM,
      labels: { ...LABELS, 'kubernetes.io/cluster-service': 'true', 'kubernetes.io/name': 'CoreDNS' },
      annotations: { 'prometheus.io/port': String(PORTS.metrics), 'prometheus.io/scrape': 'true' },
      resourceVersion: '0',
    },
    spec: {
      clusterIP,
      ports: [port('dns', PORTS.dns, 'UDP'), port('dns-tcp', PORTS.dns), port('metrics', PORTS.metrics)],
      selector: LABELS,
    },
    status: { loadBalancer: {} },
  };
}
