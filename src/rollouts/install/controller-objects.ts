import type { JsonObject } from '../../base/json.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { rolloutDefinition } from '../api/crd.ts';
import { controllerRights } from './controller-rights.ts';

/** The name of the ServiceAccount, the Deployment and the objects around it. */
const NAME = 'kubeletadm-controller';
const METADATA = { name: NAME, namespace: AGENT_NAMESPACE };
const LABELS = { 'app.kubernetes.io/name': NAME };
/** As in the image. */
const USER = 65532;

const RBAC_GROUP = 'rbac.authorization.k8s.io';

const sharedObjects = (): readonly KubeObject[] => [
  {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: AGENT_NAMESPACE, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
  },
  rolloutDefinition(),
];

/**
 * The objects of controllers that run on hosts, in the order of their creation.
 * @param users one of each host
 */
export function hostControllerObjects(users: readonly string[]): readonly KubeObject[] {
  return [...sharedObjects(), ...controllerRights(users.map((name) => ({ apiGroup: RBAC_GROUP, kind: 'User', name })))];
}

/**
 * The objects of a controller that runs in the cluster, in the order of their creation.
 * @param image with its digest
 */
export function controllerObjects(image: string): readonly KubeObject[] {
  return [
    ...sharedObjects(),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: METADATA },
    ...controllerRights([{ kind: 'ServiceAccount', ...METADATA }]),
    NETWORK_POLICY,
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: METADATA,
      spec: { maxUnavailable: 1, selector: { matchLabels: LABELS } },
    },
    deployment(image),
  ];
}

/** The Deployment of `controllerObjects`. */
export const CONTROLLER_DEPLOYMENT: ObjectRef = { apiVersion: 'apps/v1', kind: 'Deployment', ...METADATA };

/** Of metrics and probes. */
const PORT = 10247;

/** Connections to the port of metrics; from the controller: names, the API server, and services of gates on the port of HTTPS. */
const NETWORK_POLICY: KubeObject = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: METADATA,
  spec: {
    podSelector: { matchLabels: LABELS },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ ports: [{ protocol: 'TCP', port: PORT }] }],
    egress: [
      {
        ports: [...['UDP', 'TCP'].map((protocol) => ({ protocol, port: 53 })), ...[443, 6443].map((port) => ({ protocol: 'TCP', port }))],
      },
    ],
  },
};

function deployment(image: string): KubeObject {
  const container = {
    name: 'controller',
    image,
    args: ['controller', `--listen=0.0.0.0:${PORT}`],
    ports: [{ name: 'http', containerPort: PORT }],
    readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
    livenessProbe: { httpGet: { path: '/healthz', port: 'http' } },
    resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...METADATA, labels: LABELS },
    spec: {
      replicas: 2,
      selector: { matchLabels: LABELS },
      template: {
        metadata: { labels: LABELS },
        spec: {
          serviceAccountName: NAME,
          securityContext: { runAsNonRoot: true, runAsUser: USER, runAsGroup: USER, seccompProfile: { type: 'RuntimeDefault' } },
          priorityClassName: 'system-cluster-critical',
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' }],
          affinity: AFFINITY,
          containers: [container],
        },
      },
    },
  };
}

/** On different hosts, and on control planes if possible: their nodes are changed last. */
const AFFINITY: JsonObject = {
  nodeAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 50, preference: { matchExpressions: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }] } },
    ],
  },
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 100, podAffinityTerm: { labelSelector: { matchLabels: LABELS }, topologyKey: 'kubernetes.io/hostname' } },
    ],
  },
};
