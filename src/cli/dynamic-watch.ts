import { formatProblem, isAppError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { stateText } from '../dynamic/workflows/assign-config.ts';
import type { RolloutListener, RolloutOutcome } from '../dynamic/workflows/roll-out.ts';
import { describeSource } from '../kubelet/config-source.ts';
import { nodeDocument } from './dynamic-status.ts';
import type { Services } from './services.ts';

export interface WatchInput {
  readonly reporter: Reporter;
  /** Number of nodes. */
  readonly total: number;
  /** `assigned` or `reset`. */
  readonly verb: string;
  /** Prefix of the batch numbers: `revert `. */
  readonly prefix?: string;
}

/** Reports the progress of a rollout: one line per event, and a status line on a terminal. */
export function rolloutListener({ output }: Pick<Services, 'output'>, { reporter, total, verb, prefix = '' }: WatchInput): RolloutListener {
  const print = (code: string, message: string, more: Partial<Parameters<Reporter['report']>[0]> = {}): void =>
    reporter.report({ level: 'info', code, message, ...more });
  let batch = '';
  return {
    batch: ({ number, names, isCanary, down }) => {
      batch = `${prefix}batch ${number}`;
      if (total === 1) return;
      const count = `${names.length} ${names.length === 1 ? 'node' : 'nodes'}`;
      const others = down.length === 0 ? '' : `; down: ${namesText(down)}`;
      const data = { batch: number, nodes: names, canary: isCanary, down };
      print('ROLLOUT_BATCH', `${batch}${isCanary ? ' (canary)' : ''}, ${count}: ${namesText(names)}${others}`, { data });
    },
    assigned: (host, desired, isNew) => {
      const what = desired === null ? 'reset' : `${verb} ${describeSource(desired)}`;
      print('DYNAMIC_ASSIGNED', isNew ? what : `unchanged: already ${what}`, { host });
    },
    state: (node) => {
      const { why } = node.verdict;
      print('DYNAMIC_STATE', `${stateText(node)}${why === null ? '' : `: ${why}`}`, {
        host: node.config.name,
        data: { ...nodeDocument(node) },
      });
    },
    ended: ({ name, stage, validated, error }) => {
      if (total === 1) return;
      const data = {
        stage,
        node: { ...nodeDocument(validated) },
        ...(error === null ? {} : { problems: error.problems.map(formatProblem) }),
      };
      print('ROLLOUT_NODE', ENDED[stage], { host: name, level: stage === 'updated' ? 'info' : 'warning', data });
    },
    blocked: (down) =>
      print('ROLLOUT_BLOCKED', `waiting: ${namesText(down)} ${down.length === 1 ? 'is' : 'are'} down`, { level: 'warning' }),
    issue: (error) => {
      if (error === null) print('CLUSTER_ANSWERS', 'the API server is reachable again');
      else if (isAppError(error)) print(error.code, `${error.problems.map(formatProblem).join('; ')}; retrying`, { level: 'warning' });
    },
    progress: (nodes) => output.status?.(progressLine(nodes, batch)),
  };
}

const ENDED = {
  waiting: 'not started',
  'in-progress': 'in progress',
  updated: 'updated',
  failed: 'failed',
  unreachable: 'unreachable: the node is down or deleted',
  replaced: 'assigned by another operator',
} as const;

/** `7/50 nodes · batch 3: edge-003 trial, edge-004 waiting · 2 down · 1 failed`. */
function progressLine(nodes: readonly RolloutOutcome[], batch: string): string {
  const of = (stage: RolloutOutcome['stage']): readonly RolloutOutcome[] => nodes.filter((node) => node.stage === stage);
  const inProgress = of('in-progress').map(({ name, validated }) => `${name} ${validated.verdict.state}`);
  const down = nodes.filter(({ validated }) => !validated.config.isReady).length;
  const parts = [
    `${of('updated').length}/${nodes.length} nodes`,
    inProgress.length === 0
      ? ''
      : `${batch}${batch === '' ? '' : ': '}${inProgress.slice(0, 6).join(', ')}${inProgress.length > 6 ? ', …' : ''}`,
    down === 0 ? '' : `${down} down`,
    of('failed').length === 0 ? '' : `${of('failed').length} failed`,
  ];
  return parts.filter(Boolean).join(' · ');
}
