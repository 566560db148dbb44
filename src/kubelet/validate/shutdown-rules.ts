import { formatGoDuration } from '../../base/text/go-duration.ts';
import { durationAt, listAt } from '../documents/values.ts';
import type { Finding, Rule } from './rule.ts';

const TOTAL = 'shutdownGracePeriod';
const CRITICAL = 'shutdownGracePeriodCriticalPods';
const BY_PRIORITY = 'shutdownGracePeriodByPodPriority';
const SECOND = 1_000_000_000n;

/** Graceful node shutdown. */
export const SHUTDOWN_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_SHUTDOWN_PERIOD',
    check: ({ config, gates }) => {
      if (!gates.isEnabled('GracefulNodeShutdown')) return [];
      const findings = [TOTAL, CRITICAL].flatMap((path): Finding[] => {
        const period = durationAt(config, path) ?? 0n;
        if (period === 0n || period >= SECOND) return [];
        return [{ path, message: `must be 0s or at least 1s, not ${formatGoDuration(period)}` }];
      });
      const [total = 0n, critical = 0n] = [durationAt(config, TOTAL), durationAt(config, CRITICAL)];
      if (critical <= total) return findings;
      const message = `must be at most ${TOTAL}, which includes this period: ${formatGoDuration(critical)} is more than ${formatGoDuration(total)}`;
      return [...findings, { path: CRITICAL, near: [TOTAL], message }];
    },
  },
  {
    id: 'KUBELET_SHUTDOWN_BY_PRIORITY',
    since: 23,
    check: ({ config, gates }) => {
      if (!gates.isEnabled('GracefulNodeShutdownBasedOnPodPriority') || listAt(config, BY_PRIORITY).length === 0) return [];
      const others = [TOTAL, CRITICAL].filter((path) => (durationAt(config, path) ?? 0n) > 0n);
      if (others.length === 0) return [];
      return [
        {
          path: BY_PRIORITY,
          near: others,
          message: `cannot be combined with ${others.join(' and ')}`,
          hint: 'Keep only one of the settings',
        },
      ];
    },
  },
  {
    id: 'KUBELET_BACKOFF_PERIOD',
    since: 32,
    check: ({ config, gates }) => {
      const path = 'crashLoopBackOff.maxContainerRestartPeriod';
      const period = durationAt(config, path);
      if (period === undefined || !gates.isEnabled('KubeletCrashLoopBackOffMax')) return [];
      // Compared in milliseconds, rounded down.
      const ms = period / 1_000_000n;
      return ms >= 1000n && ms <= 300_000n ? [] : [{ path, message: `must be from 1s to 5m, not ${formatGoDuration(period)}` }];
    },
  },
];
