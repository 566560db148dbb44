import { AppError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { present } from '../../base/present.ts';
import { goDurationMs } from '../../base/text/go-duration.ts';
import { kindOf, type PreparedGate, type PreparedRollout } from '../../maintenance/gates/rollout-settings.ts';

/**
 * The gates and maintenance windows of a file for `--gates` as fields of `spec.strategy`.
 * @throws AppError USAGE (exit code 2) with each member that only a command line supports
 */
export function strategyOfGates({ gates, windows = [], batchDuration }: PreparedRollout): JsonObject {
  const problems = gates.flatMap((gate) => unsupported(gate).map((what) => ({ code: 'USAGE', message: `gate ${gate.name}: ${what}` })));
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  return present({
    gates: gates.length === 0 ? undefined : gates.map(gateOf),
    windows:
      windows.length === 0
        ? undefined
        : windows.map(({ duration, ...window }) => present({ ...window, endTime: window.endTime ?? endOf(window.startTime, duration) })),
    batchDurationSeconds: secondsOf(batchDuration),
  }) as JsonObject;
}

function unsupported(gate: PreparedGate): readonly string[] {
  const { prometheus, onFailure, retries, interval } = gate;
  return [
    ...(kindOf(gate) === 'command' ? ['a controller runs no commands; use a Job or a query of Prometheus'] : []),
    ...(onFailure === undefined ? [] : ['a rollout has one onFailure for nodes and gates; use --on-failure']),
    ...(prometheus?.bearerTokenFile === undefined && prometheus?.caFile === undefined
      ? []
      : ['a controller reads no bearerTokenFile and caFile; use an address in the cluster']),
    ...(gate.job !== undefined && (retries ?? interval) !== undefined
      ? ['a controller creates a Job once; set backoffLimit in its manifest instead of retries and interval']
      : []),
  ];
}

const AFTER = { canary: 'Canary', 'each-batch': 'EachBatch', end: 'End' } as const;

function gateOf({ name, after, timeout, retries, interval, prometheus, job }: PreparedGate): JsonObject {
  const { labels, annotations } = isJsonObject(job?.manifest.metadata) ? job.manifest.metadata : {};
  const metadata = present({ labels, annotations });
  return present({
    name,
    after: after && AFTER[after],
    timeoutSeconds: secondsOf(timeout),
    prometheus: prometheus && present({ ...prometheus, retries, intervalSeconds: secondsOf(interval) }),
    job: job && {
      namespace: job.namespace,
      template: { ...(Object.keys(metadata).length === 0 ? {} : { metadata }), spec: job.manifest.spec ?? {} },
    },
  }) as JsonObject;
}

function secondsOf(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : Math.ceil(goDurationMs(duration) / 1000);
}

/** `HH:MM` after a duration, which is rounded up to minutes. */
function endOf(startTime: string, duration = '0s'): string {
  const [hours = 0, minutes = 0] = startTime.split(':').map(Number);
  const end = hours * 60 + minutes + Math.ceil(goDurationMs(duration) / 60_000);
  const padded = (number: number): string => String(number).padStart(2, '0');
  return `${padded(Math.floor(end / 60) % 24)}:${padded(end % 60)}`;
}
