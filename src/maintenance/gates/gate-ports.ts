import type { RunTime } from '../../base/clock.ts';
import { AppError } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { HttpsClient } from '../../kube/https-client.ts';
import type { EndedBatch } from './batch-gates.ts';
import type { PreparedGate } from './rollout-settings.ts';

/** What gates need from outside. */
export interface GatePorts extends RunTime {
  /** Runs a program of the local host; `onStderr` receives its stderr if it exits with 0. */
  runLocal(argv: readonly string[], options: { readonly timeoutMs: number; readonly onStderr: (text: string) => void }): Promise<string>;
  readonly web: HttpsClient;
  /** Null: the run has no cluster. */
  readonly cluster: Cluster | null;
  readonly input: { readText(path: string): Promise<string> };
  newId(): Promise<string>;
}

/** A gate of one kind with its time limit in milliseconds. */
export interface Attempt {
  readonly gate: PreparedGate;
  readonly batch: EndedBatch;
  readonly timeoutMs: number;
}

/** @throws AppError GATE_FAILED: the run has no cluster */
export function requiredCluster(cluster: Cluster | null): Cluster {
  if (cluster !== null) return cluster;
  throw new AppError({ code: 'GATE_FAILED', message: 'the run has no connection to the cluster' });
}
