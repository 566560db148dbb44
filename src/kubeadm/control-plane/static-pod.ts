import type { JsonObject } from '../../base/json.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { encodeEnvVar } from '../config/encode.ts';
import type { EnvVar } from '../config/model.ts';
import { type Mount, volumeMountOf, volumeOf } from './host-mounts.ts';
import type { StaticPodName } from './paths.ts';
import { PROBE_PORT } from './probes.ts';

/** What tells one static pod of the control plane from another. */
export interface StaticPodParts {
  readonly name: StaticPodName;
  readonly image: string;
  readonly command: readonly string[];
  /** In the order in which the container has them; the volumes are sorted by name. */
  readonly mounts: readonly Mount[];
  /** Later ones win. */
  readonly env: readonly EnvVar[];
  /** Where the probes ask. */
  readonly port: number;
  readonly probes: {
    readonly livenessProbe: JsonObject;
    readonly readinessProbe?: JsonObject;
    readonly startupProbe: JsonObject;
  };
  readonly requests: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Of the class system-node-critical: static pods get no number for it from anybody. */
const NODE_CRITICAL = 2_000_001_000;

/**
 * A Pod of the control plane, on the network of its host.
 * @see kubeadm 1.36 util/staticpod/utils.go
 */
export function staticPod({ name, annotations = {}, mounts, ...parts }: StaticPodParts): JsonObject {
  const volumes = mounts.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(volumeOf);
  const container: JsonObject = {
    name,
    image: parts.image,
    imagePullPolicy: 'IfNotPresent',
    command: parts.command,
    env: settleEnvironment(parts.env),
    ports: [{ name: PROBE_PORT, containerPort: parts.port, protocol: 'TCP' }],
    resources: { requests: parts.requests },
    volumeMounts: mounts.map(volumeMountOf),
    ...parts.probes,
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: KUBE_SYSTEM, labels: { component: name, tier: 'control-plane' }, annotations },
    spec: {
      containers: [container],
      hostNetwork: true,
      priority: NODE_CRITICAL,
      priorityClassName: 'system-node-critical',
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      volumes,
    },
  };
}

/** Of several variables with one name the last; sorted by name. */
export function settleEnvironment(variables: readonly EnvVar[]): readonly JsonObject[] {
  const byName = new Map(variables.map((variable) => [variable.name, variable]));
  return [...byName.keys()].sort().map((name) => encodeEnvVar(byName.get(name) as EnvVar));
}
