import { systemClock } from '../../src/base/adapters/clock-system.ts';
import type { ReportEvent } from '../../src/base/reporter.ts';
import { nodeHttpsClient } from '../../src/kube/adapters/https-client.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { ControllerMetrics } from '../../src/rollouts/controller/metrics.ts';
import type { runController } from '../../src/rollouts/controller/run-controller.ts';

/** The ports of a controller that runs in real time. */
export function controllerPorts(
  cluster: Cluster,
  signal: AbortSignal,
  report: (event: ReportEvent) => void = () => undefined,
): Parameters<typeof runController>[0] {
  return {
    cluster,
    web: nodeHttpsClient({}),
    metrics: new ControllerMetrics(),
    clock: systemClock,
    self: { name: 'controller@test', id: process.pid, machine: 'test', isRunning: () => true },
    signal,
    random: Math.random,
    reporter: { report },
  };
}
