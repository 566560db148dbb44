import type { JsonObject } from '../../base/json.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';

/** Health endpoint of a component. `host` empty: the address of its Pod, which is the host's. */
export interface ProbeTarget {
  readonly host: string;
  readonly scheme: 'HTTP' | 'HTTPS';
}

/** The name of the probe port in each static Pod. */
export const PROBE_PORT = 'probe-port';

const PERIOD_SECONDS = 10;

/** Restarts the container if it is unhealthy for 80 seconds. */
export function livenessProbe(target: ProbeTarget, path: string): JsonObject {
  return httpProbe(target, path, { initialDelaySeconds: PERIOD_SECONDS, failureThreshold: 8, periodSeconds: PERIOD_SECONDS });
}

/** Checks every second. */
export function readinessProbe(target: ProbeTarget, path: string): JsonObject {
  return httpProbe(target, path, { initialDelaySeconds: 0, failureThreshold: 3, periodSeconds: 1 });
}

/**
 * Gives a container time to start.
 * @param within duration in Go syntax; rounded up to whole periods
 */
export function startupProbe(target: ProbeTarget, path: string, within: string): JsonObject {
  const seconds = Number(parseGoDuration(within) ?? 0n) / 1e9;
  return httpProbe(target, path, {
    initialDelaySeconds: PERIOD_SECONDS,
    failureThreshold: Math.ceil(seconds / PERIOD_SECONDS),
    periodSeconds: PERIOD_SECONDS,
  });
}

/** The probe address of a component with a bind address; empty for the unspecified address. */
export function probeHost(bindAddress: string): string {
  return bindAddress === '0.0.0.0' || bindAddress === '::' ? '' : bindAddress;
}

interface Timing {
  readonly initialDelaySeconds: number;
  readonly failureThreshold: number;
  readonly periodSeconds: number;
}

function httpProbe({ host, scheme }: ProbeTarget, path: string, timing: Timing): JsonObject {
  return { httpGet: { host, path, port: PROBE_PORT, scheme }, timeoutSeconds: 15, ...timing };
}
