import type { JsonObject } from '../../base/json.ts';
import { limitBelow } from '../../host/systemd/logind.ts';
import { durationAt, listAt, objectsAt, textAt, valueAt } from '../documents/values.ts';
import { affects, loss, type PodRisk, warning } from './pod-risk.ts';
import type { RiskInput } from './risk-input.ts';

/** The fields by which the kubelet delays a shutdown of its host. */
export const SHUTDOWN_FIELDS = ['shutdownGracePeriod', 'shutdownGracePeriodByPodPriority'] as const;

/**
 * A graceful shutdown that would not be in force: the kubelet only logs "Failed to start node shutdown manager" and
 * stays healthy, and the next reboot kills the pods.
 * @see kubernetes/kubernetes pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go start (1.36)
 */
export function shutdownRisks(input: RiskInput): readonly PodRisk[] {
  const { after, host } = input;
  const path = SHUTDOWN_FIELDS.find((field) => affects(input, [field]));
  const seconds = shutdownSeconds(after);
  if (path === undefined || seconds === 0 || host?.logind == null) return [];
  const { limits, isResponding } = host.logind;
  const field = SHUTDOWN_FIELDS.find((one) => valueAt(after, one) !== undefined && textAt(after, one) !== '0s') ?? path;
  const effect = `${field} would not be in force, and a reboot would kill the pods`;
  if (isResponding === false) return [warning(field, `systemd-logind does not respond on the host: ${effect}`)];
  const limit = limits === null ? null : limitBelow(limits, seconds);
  if (limit === null) return [];
  const why = `${limit.path} limits the delay of a shutdown with InhibitDelayMaxSec=${limit.value}, and systemd reads it after the 99-kubelet.conf of the kubelet, which needs ${seconds} s: ${effect}`;
  return [{ ...loss(field, why), fix: `set InhibitDelayMaxSec=${seconds} in ${limit.path}` }];
}

/** The field that sets the period, with its time, for example `shutdownGracePeriod (60 s)`; null: no graceful shutdown. */
export function shutdownField(config: JsonObject): string | null {
  const seconds = shutdownSeconds(config);
  const byPriority = listAt(config, 'shutdownGracePeriodByPodPriority').length > 0;
  return seconds === 0 ? null : `${SHUTDOWN_FIELDS[byPriority ? 1 : 0]} (${seconds} s)`;
}

/**
 * The time in seconds for which the kubelet delays a shutdown; 0: it does not.
 * @see kubernetes/kubernetes pkg/kubelet/nodeshutdown/nodeshutdown_manager.go periodRequested (1.36)
 */
export function shutdownSeconds(config: JsonObject): number {
  const byPriority = objectsAt(config, 'shutdownGracePeriodByPodPriority');
  if (byPriority.length > 0) return byPriority.reduce((sum, one) => sum + (Number(one.shutdownGracePeriodSeconds) || 0), 0);
  return Number(durationAt(config, 'shutdownGracePeriod') ?? 0n) / 1e9;
}
