import type { JsonObject } from '../../base/json.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { encodeEnvVar } from '../config/encode.ts';
import type { EnvVar } from '../config/model.ts';
import { type Mount, volumeMountOf, volumeOf } from './host-mounts.ts';
import type { StaticPodName } from './paths.ts';
import { PROBE_PORT } from './probes.ts';

/** The parts in which the static Pods of the control plane differ. */
interface StaticPodParts {
  readonly name: StaticPodName;
  readonly image: string;
  readonly command: readonly string[];
  /** In container order; the volumes are sorted by name. */
  readonly mounts: readonly Mount[];
  /** Later variables win. */
  readonly env: readonly EnvVar[];
  /** Endpoint of the probes. */
  readonly port: number;
  readonly probes: {
    readonly livenessProbe: JsonObject;
    readonly readinessProbe?: JsonObject;
    readonly startupProbe: JsonObject;
  };
  readonly requests: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Priority of the class system-node-critical: admission does not set it for static Pods. */
const NODE_CRITICAL = 2_000_001_000;

/**
 * A control plane Pod on the host network.
 * @see kubeadm 1.36 util/staticpod/utils.go
 */
export function staticPod({ name, annotations = {}, mounts, ...parts }: StaticPodParts): JsonObject {
  const volumes = mounts.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(volumeOf);
  const container: JsonObject = {
    name,
    image: parts.image,
    imagePullPolicy: 'IfNotPresent',
    command: parts.command,
    env: uniqueEnvVars(parts.env),
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

/** The last variable of each name, sorted by name. */
export function uniqueEnvVars(variables: readonly EnvVar[]): readonly JsonObject[] {
  const byName = new Map(variables.map((variable) => [variable.name, variable]));
  return [...byName.keys()].sort().map((name) => encodeEnvVar(byName.get(name) as EnvVar));
}
