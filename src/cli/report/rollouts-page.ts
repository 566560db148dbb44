import { groupBy } from '../../base/group-by.ts';
import { firstNames } from '../../base/text/name-ranges.ts';
import type { SharedProblem } from '../../fleet/report/status-verdict.ts';
import { type ClusterName, formatClusterName } from '../../host/plan/document.ts';
import { describeSource } from '../../kubelet/layers/config-source.ts';
import { describeWindow } from '../../maintenance/gates/windows.ts';
import { type Rollout, readRollout } from '../../rollouts/api/rollout.ts';
import type { ListedNode, RolloutStatus } from '../../rollouts/api/schema.ts';
import { revisionName } from '../../rollouts/controller/revision.ts';
import { selectNodes } from '../../rollouts/controller/select.ts';
import { type RolloutNode, returnsNodes, rolloutNodes } from '../../rollouts/reconcile/rollout-nodes.ts';
import { controllerNamespace, controllerNotRunning } from '../../rollouts/use-cases/find-rollouts.ts';
import { revisionState, revisionsIn } from '../../rollouts/use-cases/rollout-revisions.ts';
import { rolloutEnd, rolloutPhase } from '../../rollouts/use-cases/wait-for-rollout.ts';
import type { RolloutObjects } from '../../rollouts/use-cases/watch-rollouts.ts';
import type { PageTexts } from './render-report.ts';
import { type Look, MOST_NAMED } from './report-members.ts';
import { footerOf, problemsView, verdictView } from './report-page.ts';
import { durationText, hostCount, timeText } from './report-words.ts';

/** `Reverted`: it returned to another configuration. */
type NodeState = ListedNode['state'] | 'Reverted';
type ShownNode = Omit<RolloutNode, 'state'> & { readonly state: NodeState };
type Level = 'ok' | 'warning' | 'error' | 'active';

/** The colours of states, the worst first. */
const LOOKS: Readonly<Record<NodeState, Look & { readonly words: string }>> = {
  Failed: { words: 'failed', kind: 'error', sign: '✗' },
  Unreachable: { words: 'unreachable', kind: 'error', sign: '?' },
  InProgress: { words: 'in progress', kind: 'active', sign: '▸' },
  NotEnabled: { words: 'not enabled', kind: 'warning', sign: '–' },
  Pending: { words: 'pending', kind: 'wait', sign: '·' },
  Reverted: { words: 'previous configuration', kind: 'same', sign: '↩' },
  Updated: { words: 'updated', kind: 'ok', sign: '✓' },
};

const STATES = Object.keys(LOOKS) as readonly NodeState[];

const LEVELS: Readonly<Record<NonNullable<RolloutStatus['phase']>, Level>> = {
  Complete: 'ok',
  Paused: 'warning',
  Progressing: 'active',
  Reverting: 'active',
  Deleting: 'active',
  Failed: 'error',
  Reverted: 'error',
  Refused: 'error',
};

const TAGS = { ok: 'ok', warning: 'warning', error: 'error', active: 'info' } as const;

/** The squares of more nodes are smaller. */
const MOST_LARGE = 1_000;

/** Links to more rollouts would fill the line. */
const MOST_LINKS = 6;

/** A rollout with its nodes. */
interface ShownRollout {
  readonly rollout: Rollout;
  readonly level: Level;
  /** `new`: no controller has processed the present version of the object. */
  readonly phase: string;
  readonly message: string;
  readonly nodes: readonly ShownNode[];
  /** The number of nodes that are failed or unreachable. */
  readonly failed: number;
}

/**
 * The texts of the page of all rollouts of a cluster: what failed and why, then each rollout with its nodes, gates and revisions.
 * @param version of the program
 */
export function rolloutsPage(objects: RolloutObjects, cluster: ClusterName, version: string): PageTexts {
  const { shown, errors } = shownRollouts(objects);
  const issues = objects.issues.map(({ host: _, ...problem }) => ({ severity: 'error' as const, hosts: [], problem }));
  const warnings: readonly SharedProblem[] =
    objects.isControllerAlive === false && shown.length > 0
      ? [{ severity: 'warning', hosts: [], problem: controllerNotRunning(controllerNamespace(objects.revisions)) }]
      : [];
  const problems = problemsView([...issues, ...shown.flatMap(rolloutProblems), ...errors, ...warnings], 'node', '–');
  const nodes = shown.flatMap((one) => one.nodes);
  const others = objects.nodes.length - new Set(nodes.map(({ name }) => name)).size;
  const controller = { true: 'running', false: 'not running', null: null }[`${objects.isControllerAlive}`];
  const facts = factViews([
    ['Cluster', formatClusterName(cluster)],
    ['Controller', controller],
    ['Without rollout', others === 0 ? null : `${others} of ${objects.nodes.length} nodes`],
  ]);
  const verdict = verdictOf(shown);
  const title = `kubeletadm ui: ${cluster.context ?? cluster.server}`;
  const links = shown.length > MOST_LINKS ? [] : shown.map(({ rollout: { name } }) => ({ id: `rollout-${name}`, name }));
  const sections = [
    ...(problems === null ? [] : [{ id: 'problems', name: 'Problems' }]),
    ...(shown.length > 1 ? [{ id: 'rollouts', name: 'Rollouts' }] : []),
    ...links,
  ];
  return {
    title: `${verdict.level === 'error' ? '✗ ' : ''}${title}`,
    footer: footerOf(version),
    parts: {
      head: {
        title,
        verdict: verdictView(verdict),
        counts: [{ isTotal: true, size: nodes.length, words: `node${nodes.length === 1 ? '' : 's'} of rollouts` }, ...countViews(nodes)],
        impact: null,
        facts,
      },
      links: { sections },
      problems,
      rollouts: { index: shown.length > 1 ? shown.map(indexView) : null, items: shown.map((one) => itemView(one, objects)) },
    },
  };
}

/** All rollouts by name; `errors`: objects that this version cannot read. */
function shownRollouts({ rollouts, nodes }: RolloutObjects): { readonly shown: readonly ShownRollout[]; readonly errors: SharedProblem[] } {
  const errors: SharedProblem[] = [];
  const readable = rollouts.flatMap((object) => {
    const read = readRollout(object);
    if ('rollout' in read) return [read.rollout];
    errors.push(problemOf('error', object.metadata.name, { code: 'ROLLOUT_INVALID', message: read.errors.join('; ') }));
    return [];
  });
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]));
  const shown = selectNodes(readable, nodes).map(({ rollout, names, refusal }) => {
    // The nodes of a conflict are those of the older rollout.
    const own = refusal === null ? names.flatMap((name) => byName.get(name) ?? []) : [];
    const { phase, message } = rolloutPhase(rollout);
    const level = phase === null ? 'active' : LEVELS[phase];
    const returns = returnsNodes(rollout);
    const shownNodes = rolloutNodes(rollout, own).map((node) =>
      returns && node.state === 'Updated' ? { ...node, state: 'Reverted' as const } : node,
    );
    const failed = shownNodes.filter(({ state }) => LOOKS[state].kind === 'error').length;
    return { rollout, level, phase: phase ?? 'new', message, nodes: shownNodes, failed };
  });
  return { shown: shown.toSorted((a, b) => (a.rollout.name < b.rollout.name ? -1 : 1)), errors };
}

function problemOf(
  severity: 'error' | 'warning',
  name: string,
  problem: SharedProblem['problem'],
  hosts: readonly string[] = [],
): SharedProblem {
  return { severity, hosts, problem: { ...problem, path: `rollout ${name}` } };
}

/** The failed nodes by cause, and why the rollout has stopped. */
function rolloutProblems({ rollout, nodes }: ShownRollout): readonly SharedProblem[] {
  const { name } = rollout;
  const failed = nodes.filter(({ state }) => LOOKS[state].kind === 'error');
  const byCause = groupBy(failed, ({ state, message = '' }) => `${LOOKS[state].words}${message === '' ? '' : `: ${message}`}`);
  const causes = [...byCause].map(([message, same]) =>
    problemOf(
      'error',
      name,
      { code: null, message },
      same.map((node) => node.name),
    ),
  );
  const stopped = rolloutEnd(rollout)?.problem?.problems ?? [];
  return [...causes, ...stopped.map(({ host: _, ...problem }) => ({ severity: 'error' as const, hosts: [], problem }))];
}

/** Failed nodes are an error, also if the rollout continues. */
function verdictOf(shown: readonly ShownRollout[]): { readonly level: Level; readonly text: string } {
  const [only] = shown;
  if (only === undefined) return { level: 'ok', text: 'No rollout exists. Create one: kubeletadm rollout create NAME' };
  if (shown.length === 1) {
    const { level, phase, failed, nodes, rollout } = only;
    const failures = failed === 0 ? '' : `, ${failed} of ${hostCount(nodes.length, 'node')} failed`;
    return { level: failed === 0 ? level : 'error', text: `${rollout.name}: ${phase}${failures}` };
  }
  for (const [level, text, matches] of VERDICTS) {
    const names = shown.filter(matches).map(({ phase, rollout: { name } }) => `${name} (${phase})`);
    if (names.length > 0) return { level, text: `${names.length} of ${shown.length} rollouts ${text}: ${firstNames(names, MOST_NAMES)}` };
  }
  return { level: 'ok', text: `All ${shown.length} rollouts are complete.` };
}

const VERDICTS: readonly (readonly [Level, text: string, matches: (one: ShownRollout) => boolean])[] = [
  ['error', 'stalled', ({ level }) => level === 'error'],
  ['error', 'with failed nodes', ({ failed }) => failed > 0],
  ['active', 'in progress', ({ level }) => level === 'active'],
  ['warning', 'paused', ({ level }) => level === 'warning'],
];
const MOST_NAMES = 8;

function countViews(nodes: readonly ShownNode[]): readonly object[] {
  const byState = groupBy(nodes, ({ state }) => state);
  return STATES.flatMap((state) => {
    const size = byState.get(state)?.length ?? 0;
    return size === 0 ? [] : [{ isTotal: false, size, ...LOOKS[state] }];
  });
}

function factViews(facts: readonly (readonly [name: string, text: string | null | undefined])[]): readonly object[] {
  return facts.flatMap(([name, text]) => (text == null || text === '' ? [] : [{ name, text, isCode: false, isWide: name === 'Cluster' }]));
}

function indexView({ rollout, level, phase, nodes, failed }: ShownRollout): object {
  const sizeOf = (wanted: NodeState): number => nodes.filter(({ state }) => state === wanted).length;
  return {
    name: rollout.name,
    tag: TAGS[level],
    phase,
    nodes: nodes.length,
    updated: sizeOf('Updated'),
    inProgress: sizeOf('InProgress'),
    failed,
    revision: rollout.status.updateRevision ?? '',
  };
}

function itemView(shown: ShownRollout, objects: RolloutObjects): object {
  const { rollout, level, phase, message, nodes } = shown;
  const { name, spec, status, isDeleted } = rollout;
  const gates = (status.gates ?? []).toReversed().map(gateView);
  const revisions = revisionsView(rollout, objects);
  return {
    name,
    tag: TAGS[level],
    phase,
    message,
    isDeleted,
    switch: isDeleted ? null : spec.paused ? { action: 'resume', words: 'Resume' } : { action: 'pause', words: 'Pause' },
    total: nodes.length,
    updated: nodes.filter(({ state }) => state === 'Updated').length,
    facts: factViews(factsOf(rollout)),
    grid: nodes.length === 0 ? null : gridView(nodes, objects.rollouts.length > 1),
    gates: gates.length === 0 ? null : gates,
    ...revisions,
  };
}

function factsOf({ spec, status, createdAt }: Rollout): Parameters<typeof factViews>[0] {
  const { canary, maxUnavailable, maxFailures, gates = [], windows = [] } = spec.strategy;
  const { batch, updateRevision, updateConfigMap } = status;
  return [
    ['Revision', updateRevision],
    ['ConfigMap', updateConfigMap === undefined ? null : describeSource(updateConfigMap)],
    ['Canary', canary.count === 0 ? null : `${canary.count} first${canary.nodeSelector === undefined ? '' : ', selected by label'}`],
    ['Unavailable', `at most ${maxUnavailable}`],
    ['On failure', `${spec.onFailure}, ${maxFailures === 0 ? 'at the first failed node' : `after more than ${maxFailures} failed nodes`}`],
    [
      'Batch',
      batch === undefined
        ? null
        : `${batch.number}, ${batch.endedAt === undefined ? `started ${shownTime(batch.startedAt)}` : `ended ${shownTime(batch.endedAt)}`}`,
    ],
    ['Gates', gates.map((gate) => `${gate.name} (${gate.after})`).join(', ')],
    ['Windows', windows.map(describeWindow).join('; ')],
    ['Created', shownTime(createdAt)],
  ];
}

/** The time of an object, which another client may have written. */
function shownTime(text: string): string {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text : timeText(time);
}

/** @param hasCounts the counts of the only rollout are at the top of the page */
function gridView(nodes: readonly ShownNode[], hasCounts: boolean): object {
  return {
    isDense: nodes.length > MOST_NAMED,
    isFine: nodes.length > MOST_LARGE,
    counts: hasCounts ? countViews(nodes) : null,
    hasCanary: nodes.some(({ isCanary }) => isCanary),
    cells: nodes.map(({ name, state, since, message, isReady, isCanary }) => {
      const { words, kind, sign } = LOOKS[state];
      const more = [
        ...(isCanary ? ['canary'] : []),
        ...(isReady ? [] : ['NotReady']),
        ...(since === undefined ? [] : [`since ${shownTime(since)}`]),
      ];
      const cause = message === undefined || message === '' ? '' : `: ${message}`;
      return { name, kind, sign, isCanary, words: `${[`${name}: ${words}`, ...more].join(', ')}${cause}` };
    }),
  };
}

function gateView({ name, batch, state, startedAt, endedAt, attempts, answer = '' }: NonNullable<RolloutStatus['gates']>[number]): object {
  const took = endedAt === undefined ? '' : durationText(Math.max(0, Date.parse(endedAt) - Date.parse(startedAt)));
  const tag = { Running: 'info', Passed: 'ok', Failed: 'error' }[state];
  return { name, batch, state, tag, took, attempts, answer };
}

/** Newest first. */
function revisionsView(rollout: Rollout, { revisions }: RolloutObjects) {
  const present = revisionName(rollout);
  const all = revisionsIn(revisions, rollout).toReversed();
  const earlier = all.find(({ name }) => name !== present);
  const rows = all.map((revision) => {
    const { number, name, createdAt, payload } = revision;
    const isPresent = name === present;
    const state = revisionState(rollout, revision);
    return {
      number,
      name,
      created: shownTime(createdAt),
      state: state === null ? null : { text: state, tag: { failed: 'error', current: 'ok', 'rolling out': 'info' }[state] },
      payload: payload.configMapRef === undefined ? 'overlay' : describeSource(payload.configMapRef),
      canUndo: !isPresent && !rollout.isDeleted,
      isFrom: revision === earlier,
      isTo: isPresent,
    };
  });
  return {
    revisions: rows.length === 0 ? null : rows,
    undo: rollout.isDeleted ? null : (earlier?.number ?? null),
    canCompare: rows.length > 1,
  };
}
