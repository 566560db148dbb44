import { AppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { KubeObject } from '../../kube/object.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import {
  BOOTSTRAP_GROUP,
  clusterBinding,
  namespacedBinding,
  readConfigMapRole,
  serviceAccountSubject,
} from '../cluster-objects/bootstrap-rbac.ts';
import { signConfigMap } from '../cluster-objects/kubelet-config-map.ts';
import { decodeKubeProxyConfiguration, kubeProxyWarnings, renderKubeProxyConfiguration } from '../config/kube-proxy-config.ts';
import { problemAsWarning } from '../config/problem-as-warning.ts';
import { type ReleaseFacts, releaseFacts } from '../config/releases.ts';
import { kubernetesImage } from '../control-plane/images.ts';
import { type ControlPlaneNode, controlPlaneServer } from '../control-plane/model.ts';
import { uniqueEnvVars } from '../control-plane/static-pod.ts';
import { patchedObject } from '../patches/patched-object.ts';

const AT = { name: 'kube-proxy', namespace: KUBE_SYSTEM } as const;
const LABELS = { 'k8s-app': 'kube-proxy' };

export const KUBE_PROXY_CONFIG_KEY = 'config.conf';

export type KubeProxyObjects = ReturnType<typeof kubeProxyObjects>['objects'];

/**
 * kube-proxy as deployed by kubeadm 1.36, with the user's KubeProxyConfiguration over kubeadm's values, and from 1.37 on
 * with the user's patches for `kubeproxydaemonset`.
 * @returns the objects, and warnings about that configuration and about patches that the release ignores
 * @throws AppError with all errors in that configuration, exit code 2; those of `patchedObject`
 * @see kubeadm 1.36 phases/addons/proxy
 */
export function kubeProxyObjects(node: ControlPlaneNode) {
  const facts = releaseFacts(node.cluster.kubernetesVersion);
  const { configMap, warnings } = kubeProxyConfigMap(node, facts);
  const patches = facts.patchesKubeProxy ? node.patches : [];
  const objects = {
    configMap,
    daemonSet: patchedObject(daemonSet(node), patches, { kind: 'DaemonSet', target: PATCH_TARGET }) as KubeObject,
    serviceAccount: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: AT },
    /** ClusterRoleBinding, Role and RoleBinding. */
    rbac: [
      clusterBinding('kubeadm:node-proxier', 'system:node-proxier', serviceAccountSubject(AT)),
      readConfigMapRole(AT, AT.name),
      namespacedBinding(AT, [BOOTSTRAP_GROUP]),
    ],
  };
  return { objects, warnings: [...warnings, ...(facts.patchesKubeProxy ? [] : ignoredPatches(node))] };
}

const PATCH_TARGET = 'kubeproxydaemonset';

/** kubeadm of the release ignores these files. */
function ignoredPatches({ cluster, patches }: ControlPlaneNode): readonly Warning[] {
  const sources = new Set(patches.filter(({ target }) => target === PATCH_TARGET).map(({ source }) => source));
  return [...sources].map((source) => ({
    code: 'PATCH_IGNORED',
    message: `${source} is not used: Kubernetes ${cluster.kubernetesVersion} has no patch target ${PATCH_TARGET}; 1.37 and later have it`,
  }));
}

/** Marked as generated if the user provided no configuration. */
function kubeProxyConfigMap(
  node: ControlPlaneNode,
  { kubeProxyMode: mode, warnsOfIpvs }: ReleaseFacts,
): { readonly configMap: KubeObject; readonly warnings: readonly Warning[] } {
  const { cluster, localAPIEndpoint, kubeProxy } = node;
  const { podSubnet } = cluster.networking;
  const input = {
    advertiseAddress: localAPIEndpoint.advertiseAddress,
    podSubnet,
    mode: mode ?? undefined,
    warnsOfIpvs,
  };
  const decoded = kubeProxy === null ? null : decodeKubeProxyConfiguration(kubeProxy);
  const written = decoded === null ? null : readWritten(decoded);
  const data = {
    [KUBE_PROXY_CONFIG_KEY]: renderKubeProxyConfiguration(written, input).trimEnd(),
    'kubeconfig.conf': kubeconfig(controlPlaneServer(node)),
  };
  const configMap: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...AT, labels: { app: 'kube-proxy' } }, data };
  return {
    configMap: written === null ? signConfigMap(configMap) : configMap,
    warnings: decoded === null ? [] : [...decoded.problems.map(problemAsWarning), ...kubeProxyWarnings(decoded.value, input)],
  };
}

function readWritten({ value, problems }: ReturnType<typeof decodeKubeProxyConfiguration>): JsonObject {
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  if (errors.length > 0) throw new AppError(errors, { exitCode: 2 });
  return value;
}

/**
 * kube-proxy authenticates with its service account token. The text is kubeadm's, because the ConfigMap hash covers it.
 */
function kubeconfig(server: string): string {
  const mounted = '/var/run/secrets/kubernetes.io/serviceaccount';
  return `apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: ${mounted}/ca.crt
    server: ${server}
  name: default
contexts:
- context:
    cluster: default
    namespace: default
    user: default
  name: default
current-context: default
users:
- name: default
  user:
    tokenFile: ${mounted}/token`;
}

function daemonSet({ cluster, proxyEnvironment }: ControlPlaneNode): JsonObject {
  const nodeName = { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } };
  const container: JsonObject = {
    name: 'kube-proxy',
    image: kubernetesImage('kube-proxy', cluster),
    imagePullPolicy: 'IfNotPresent',
    command: ['/usr/local/bin/kube-proxy', `--config=/var/lib/kube-proxy/${KUBE_PROXY_CONFIG_KEY}`, '--hostname-override=$(NODE_NAME)'],
    securityContext: { privileged: true },
    volumeMounts: [
      { mountPath: '/var/lib/kube-proxy', name: 'kube-proxy' },
      { mountPath: '/run/xtables.lock', name: 'xtables-lock' },
      { mountPath: '/lib/modules', name: 'lib-modules', readOnly: true },
    ],
    env: [nodeName, ...uniqueEnvVars(proxyEnvironment)],
  };
  const spec = {
    priorityClassName: 'system-node-critical',
    containers: [container],
    hostNetwork: true,
    serviceAccountName: 'kube-proxy',
    volumes: [
      { name: 'kube-proxy', configMap: { name: AT.name } },
      { name: 'xtables-lock', hostPath: { path: '/run/xtables.lock', type: 'FileOrCreate' } },
      { name: 'lib-modules', hostPath: { path: '/lib/modules' } },
    ],
    tolerations: [{ operator: 'Exists' }],
    nodeSelector: { 'kubernetes.io/os': 'linux' },
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { ...AT, labels: LABELS },
    spec: {
      selector: { matchLabels: LABELS },
      updateStrategy: { type: 'RollingUpdate' },
      template: { metadata: { labels: LABELS }, spec },
    },
  };
}
