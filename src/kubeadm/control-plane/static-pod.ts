import type { Arg } from '../../base/arg.ts';
import type { JsonObject } from '../../base/json.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { encodeEnvVar } from '../config/encode.ts';
import type { EnvVar } from '../config/model.ts';
import type { Mount } from './host-mounts.ts';
import type { ControlPlaneNode } from './model.ts';
import type { StaticPodName } from './paths.ts';

/** Health endpoint of a component. `host` empty: the address of its Pod, which is the host's. */
export interface ProbeTarget {
  readonly host: string;
  readonly scheme: 'HTTP' | 'HTTPS';
  readonly port: number;
}

/** The parts in which the static Pods of the control plane differ. */
interface StaticPodParts {
  readonly image: string;
  /** Default arguments by name; those that the user sets are omitted. */
  readonly ownArgs: Readonly<Record<string, string>>;
  readonly extraArgs: readonly Arg[] | undefined;
  /** In container order; the volumes are sorted by name. */
  readonly mounts: readonly Mount[];
  /** Later variables win. */
  readonly env: readonly EnvVar[];
  readonly target: ProbeTarget;
  /** Paths of the probes. */
  readonly liveness: string;
  readonly readiness?: string;
  readonly startup: string;
  readonly requests: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Priority of the class system-node-critical: admission does not set it for static Pods. */
const NODE_CRITICAL = 2_000_001_000;
const PROBE_PORT = 'probe-port';

/**
 * A control plane Pod on the host network. Its command has the default arguments sorted by name, then the user's arguments
 * in the given order, including repeated ones.
 * @see kubeadm 1.36 util/staticpod/utils.go, util/arguments.go
 */
export function staticPod(name: StaticPodName, { timeouts }: Pick<ControlPlaneNode, 'timeouts'>, parts: StaticPodParts): JsonObject {
  const { ownArgs, extraArgs = [], mounts, target, readiness, annotations = {} } = parts;
  const isGiven = (flag: string): boolean => extraArgs.some((arg) => arg.name === flag);
  const own = Object.entries(ownArgs).filter(([flag]) => !isGiven(flag));
  const args = [...own.toSorted(([a], [b]) => (a < b ? -1 : 1)), ...extraArgs.map(({ name: flag, value }) => [flag, value] as const)];
  const container: JsonObject = {
    name,
    image: parts.image,
    imagePullPolicy: 'IfNotPresent',
    command: [name, ...args.map(([flag, value]) => `--${flag}=${value}`)],
    env: uniqueEnvVars(parts.env),
    ports: [{ name: PROBE_PORT, containerPort: target.port, protocol: 'TCP' }],
    resources: { requests: parts.requests },
    volumeMounts: mounts.map(({ name: volume, mountPath, readOnly }) => ({ name: volume, mountPath, readOnly })),
    // Restarts the container if it is unhealthy for 80 seconds.
    livenessProbe: httpProbe(target, parts.liveness, 8),
    ...(readiness === undefined
      ? {}
      : { readinessProbe: { ...httpProbe(target, readiness, 3), initialDelaySeconds: 0, periodSeconds: 1 } }),
    startupProbe: httpProbe(target, parts.startup, startupPeriods(timeouts.controlPlaneComponentHealthCheck)),
  };
  const volumes = mounts
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name: volume, hostPath, pathType }) => ({ name: volume, hostPath: { path: hostPath, type: pathType } }));
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

const PERIOD_SECONDS = 10;

function httpProbe({ host, scheme }: ProbeTarget, path: string, failureThreshold: number): JsonObject {
  const httpGet = { host, path, port: PROBE_PORT, scheme };
  return { httpGet, timeoutSeconds: 15, initialDelaySeconds: PERIOD_SECONDS, failureThreshold, periodSeconds: PERIOD_SECONDS };
}

/** A duration in whole periods, rounded up. */
function startupPeriods(duration: string): number {
  return Math.ceil(Number(parseGoDuration(duration) ?? 0n) / 1e9 / PERIOD_SECONDS);
}

/** The last variable of each name, sorted by name. */
export function uniqueEnvVars(variables: readonly EnvVar[]): readonly JsonObject[] {
  const byName = new Map(variables.map((variable) => [variable.name, variable]));
  return [...byName.keys()].sort().map((name) => encodeEnvVar(byName.get(name) as EnvVar));
}
