import { groupBy } from '../../base/group-by.ts';
import type { KubeObject } from '../../kube/object.ts';
import { assessBudget, type Budget, type BudgetVerdict, needsBudget, readBudget } from './budget.ts';
import { budgetIndex } from './budget-index.ts';
import { type DrainPod, type DrainRules, isToEvict, readDrainPod } from './drain-pod.ts';
import { estimatePlacement, type LocalVolumes, type PlacementEstimate } from './placement.ts';

/** Objects of the cluster. */
export interface ClusterView {
  readonly nodes: readonly KubeObject[];
  /** Pods of all nodes. */
  readonly pods: readonly KubeObject[];
  readonly budgets: readonly KubeObject[];
  readonly volumes: LocalVolumes;
  /** Replicas of controllers by UID, as far as read. */
  readonly scales: ReadonlyMap<string, number>;
  /** UIDs of the existing DaemonSets; null: not read. */
  readonly daemonSets: ReadonlySet<string> | null;
}

/** What keeps a node from being drained. */
interface DrainBlocker {
  /**
   * Refused until an option permits it: `daemon-sets`, `bare`, `empty-dir`. Refused until the cluster is changed: `deadlock`,
   * `overlap`. The drain starts and waits: `budget`, `operator`, `no-room`, `grace`.
   */
  readonly kind: 'daemon-sets' | 'bare' | 'empty-dir' | 'deadlock' | 'overlap' | 'budget' | 'operator' | 'no-room' | 'grace';
  /** The drain is not started. */
  readonly isRefusal: boolean;
  /** `NAMESPACE/NAME` of the pods. */
  readonly pods: readonly string[];
  /** `NAMESPACE/NAME` of PodDisruptionBudgets. */
  readonly budgets: readonly string[];
  /** A clause without the pods. */
  readonly why: string;
  /** How to free it, as a sentence without a full stop. */
  readonly fix: string;
}

/** What a drain of a node would do. Lists are names of pods, `NAMESPACE/NAME`. */
export interface NodeForecast {
  readonly node: string;
  /** `drained`: nothing to evict · `ready` · `waits`: for budgets, places or long grace periods · `blocked`: not started. */
  readonly state: 'drained' | 'ready' | 'waits' | 'blocked';
  readonly evictable: readonly string[];
  readonly daemonSet: readonly string[];
  readonly mirror: readonly string[];
  readonly finished: readonly string[];
  /** Evictable pods that no controller creates again. */
  readonly bare: readonly string[];
  readonly emptyDir: readonly string[];
  readonly hostPath: readonly string[];
  readonly longGrace: readonly { readonly pod: string; readonly seconds: number }[];
  /** Estimate: pods that no other node can take, with the reasons of the other nodes. */
  readonly unplaced: ReturnType<PlacementEstimate['unplaced']>;
  readonly blockers: readonly DrainBlocker[];
}

/** A budget that covers pods of the nodes. */
interface BudgetForecast extends Pick<BudgetVerdict, 'state' | 'why' | 'fix'> {
  /** `NAMESPACE/NAME`. */
  readonly name: string;
  readonly rule: string;
  readonly disruptionsAllowed: number;
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly expectedPods: number;
  readonly unhealthyPodEvictionPolicy: Budget['unhealthyPodEvictionPolicy'];
  /** Covered evictable pods of the nodes that are healthy, and those that are not Ready. */
  readonly healthy: readonly string[];
  readonly unhealthy: readonly string[];
}

export interface DrainForecast {
  readonly nodes: readonly NodeForecast[];
  readonly budgets: readonly BudgetForecast[];
  /** Number of these nodes, whichever, that can be drained at the same time without waiting for a budget; at least 1. */
  readonly atOnce: number;
}

/** Pods with a longer grace period are named. */
const LONG_GRACE_SECONDS = 120;

/**
 * Forecasts the drain of each node, as if the others were in service.
 * @param names nodes, in the order of the result
 * @param timeoutMs time limit of a node; null: none
 */
type DrainForecaster = (names: readonly string[], rules: DrainRules, timeoutMs: number | null) => DrainForecast;

/** Prepares forecasts of a cluster: what several of them need is computed once. */
export function drainForecaster(view: ClusterView): DrainForecaster {
  const pods = view.pods.map(readDrainPod);
  const byNode = groupBy(pods, ({ node }) => node);
  const coveringOf = budgetIndex(view.budgets.map(readBudget));
  const covered = new Map<Budget, DrainPod[]>();
  const budgetsOf = new Map<DrainPod, readonly Budget[]>();
  for (const pod of pods) {
    const own = coveringOf(pod);
    budgetsOf.set(pod, own);
    for (const budget of own) {
      const others = covered.get(budget);
      if (others === undefined) covered.set(budget, [pod]);
      else others.push(pod);
    }
  }
  const placement = estimatePlacement(view.nodes, pods, view.volumes);
  const { scales, daemonSets } = view;
  return (...drain) => forecastNodes({ byNode, covered, budgetsOf, scales, placement, daemonSets }, ...drain);
}

interface PreparedView extends Pick<ClusterView, 'scales' | 'daemonSets'> {
  readonly byNode: ReadonlyMap<string, readonly DrainPod[]>;
  /** The pods of each budget. */
  readonly covered: ReadonlyMap<Budget, readonly DrainPod[]>;
  readonly budgetsOf: ReadonlyMap<DrainPod, readonly Budget[]>;
  readonly placement: PlacementEstimate;
}

function forecastNodes(view: PreparedView, ...[names, rules, timeoutMs]: Parameters<DrainForecaster>): DrainForecast {
  const { byNode, covered } = view;
  const targets = new Set(names);
  const relevant = [...covered].filter(([, own]) => own.some((pod) => targets.has(pod.node) && isToEvict(pod, rules)));
  const verdicts = new Map(relevant.map(([budget, own]) => [budget, assessBudget(budget, own, view.scales)]));
  const context = { ...view, rules, verdicts, timeoutMs };
  const isGuarded = (pod: DrainPod, budget: Budget): boolean => isToEvict(pod, rules) && needsBudget(pod, budget);
  const load = (budget: Budget, own: readonly DrainPod[]): readonly number[] => {
    const guarded = own.filter((pod) => targets.has(pod.node) && isGuarded(pod, budget));
    return [...groupBy(guarded, ({ node }) => node).values()].map(({ length }) => length);
  };
  return {
    nodes: names.map((name) => forecastNode(name, byNode.get(name) ?? [], context)),
    budgets: relevant.map(([budget, own]) => {
      const mine = own.filter((pod) => targets.has(pod.node) && isToEvict(pod, rules));
      return budgetForecast(budget, verdicts.get(budget) as BudgetVerdict, mine);
    }),
    atOnce: Math.max(
      1,
      Math.min(names.length, ...relevant.map(([budget, own]) => nodesAtOnce(load(budget, own), budget.disruptionsAllowed))),
    ),
  };
}

/**
 * The number of nodes whose pods a budget allows to evict together, whichever they are; Infinity: all.
 * @param podsByNode covered pods of each node that has some
 */
function nodesAtOnce(podsByNode: readonly number[], allowed: number): number {
  let left = allowed;
  const fullest = podsByNode.toSorted((a, b) => b - a);
  const end = fullest.findIndex((count) => {
    left -= count;
    return left < 0;
  });
  return end < 0 ? Number.POSITIVE_INFINITY : end;
}

function budgetForecast(budget: Budget, { state, why, fix }: BudgetVerdict, pods: readonly DrainPod[]): BudgetForecast {
  const { name, rule, disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods, unhealthyPodEvictionPolicy } = budget;
  const namesWhere = (isReady: boolean): readonly string[] => pods.filter((pod) => pod.isReady === isReady).map((pod) => pod.name);
  const counts = { disruptionsAllowed, currentHealthy, desiredHealthy, expectedPods };
  return { name, rule, state, why, fix, ...counts, unhealthyPodEvictionPolicy, healthy: namesWhere(true), unhealthy: namesWhere(false) };
}

interface ForecastContext extends Pick<PreparedView, 'budgetsOf' | 'placement' | 'daemonSets'> {
  readonly rules: DrainRules;
  readonly verdicts: ReadonlyMap<Budget, BudgetVerdict>;
  readonly timeoutMs: number | null;
}

const namesOf = (pods: readonly DrainPod[]): readonly string[] => pods.map(({ name }) => name).sort();

function forecastNode(node: string, pods: readonly DrainPod[], context: ForecastContext): NodeForecast {
  const { rules, placement } = context;
  const evicted = pods.filter((pod) => isToEvict(pod, rules));
  const bare = evicted.filter(({ controller }) => controller === null);
  const moved = evicted.filter(({ controller, isTerminating }) => controller !== null && !isTerminating);
  const unplaced = placement.unplaced(node, moved);
  const blockers = [
    ...podBlockers(pods, evicted, bare, context),
    ...budgetBlockers(evicted, new Set(unplaced.map(({ pod }) => pod)), context),
  ];
  const isBlocked = blockers.some(({ isRefusal }) => isRefusal);
  const waits = blockers.length > 0 ? 'waits' : 'ready';
  const ofKind = (kind: DrainPod['kind']): readonly string[] => namesOf(pods.filter((pod) => pod.kind === kind));
  return {
    node,
    state: isBlocked ? 'blocked' : evicted.length === 0 ? 'drained' : waits,
    evictable: namesOf(evicted),
    daemonSet: ofKind('daemon-set'),
    mirror: ofKind('mirror'),
    finished: ofKind('finished'),
    bare: namesOf(bare),
    emptyDir: namesOf(evicted.filter(({ emptyDirs }) => emptyDirs.length > 0)),
    hostPath: namesOf(evicted.filter(({ hostPaths }) => hostPaths.length > 0)),
    longGrace: evicted
      .filter((pod) => graceOf(pod, rules) >= LONG_GRACE_SECONDS)
      .map((pod) => ({ pod: pod.name, seconds: graceOf(pod, rules) })),
    unplaced,
    blockers,
  };
}

function graceOf({ graceSeconds }: DrainPod, { gracePeriodSeconds }: DrainRules): number {
  return gracePeriodSeconds ?? graceSeconds;
}

/** The rules of kubectl drain, and grace periods beyond the time limit. @see k8s.io/kubectl pkg/drain/filters.go (1.36) */
function podBlockers(
  pods: readonly DrainPod[],
  evicted: readonly DrainPod[],
  bare: readonly DrainPod[],
  { rules, timeoutMs, daemonSets }: ForecastContext,
): readonly DrainBlocker[] {
  const found: DrainBlocker[] = [];
  const add = (blocker: Pick<DrainBlocker, 'kind' | 'isRefusal' | 'why' | 'fix'>, which: readonly DrainPod[]): void => {
    if (which.length > 0) found.push({ ...blocker, pods: namesOf(which), budgets: [] });
  };
  const ofDaemonSets = pods.filter(({ kind, labels }) => kind === 'daemon-set' && rules.selects(labels));
  const ignoring = { why: 'pods of DaemonSets stay on the node', fix: 'Pass --ignore-daemonsets' };
  if (!rules.ignoreDaemonSets) add({ kind: 'daemon-sets', isRefusal: true, ...ignoring }, ofDaemonSets);
  const orphans = ofDaemonSets.filter(({ controller }) => daemonSets !== null && !daemonSets.has(controller?.uid ?? ''));
  const lost = {
    kind: 'bare',
    isRefusal: true,
    why: 'no controller creates these pods again',
    fix: `Pass ${rules.lossOption ?? '--force'} to lose these pods, or move them first`,
  } as const;
  if (!rules.force)
    add(
      lost,
      [...bare, ...orphans].filter(({ isTerminating }) => !isTerminating),
    );
  const data = {
    why: 'the data of emptyDir volumes would be deleted',
    fix: `Pass ${rules.lossOption ?? '--delete-emptydir-data'} to lose the data, or save it first`,
  };
  const withData = evicted.filter(({ emptyDirs, isTerminating }) => emptyDirs.length > 0 && !isTerminating);
  if (!rules.deleteEmptyDirData) add({ kind: 'empty-dir', isRefusal: true, ...data }, withData);
  const slow = evicted.filter((pod) => timeoutMs !== null && graceOf(pod, rules) * 1000 > timeoutMs);
  const longest = Math.max(...slow.map((pod) => graceOf(pod, rules)));
  const grace = {
    why: `their grace period of up to ${longest} s exceeds the time limit`,
    fix: 'Raise the time limit, or shorten the grace period (drain: --grace-period)',
  };
  add({ kind: 'grace', isRefusal: false, ...grace }, slow);
  return found;
}

function budgetBlockers(
  evicted: readonly DrainPod[],
  unplaced: ReadonlySet<string>,
  { budgetsOf, verdicts }: ForecastContext,
): readonly DrainBlocker[] {
  const waiting = evicted.filter(({ isTerminating, phase }) => !isTerminating && phase !== 'Pending');
  const overlapping = waiting.filter((pod) => (budgetsOf.get(pod)?.length ?? 0) > 1);
  const found: DrainBlocker[] = [
    ...groupBy(overlapping, (pod) =>
      budgetsOf
        .get(pod)
        ?.map(({ name }) => name)
        .join(' and '),
    ),
  ].map(([names, pods]) => ({
    kind: 'overlap',
    isRefusal: true,
    pods: namesOf(pods),
    budgets: (names ?? '').split(' and '),
    why: `the API server evicts no pod with several PodDisruptionBudgets (${names})`,
    fix: 'Let only one PodDisruptionBudget select each pod',
  }));
  const single = waiting.filter((pod) => budgetsOf.get(pod)?.length === 1);
  for (const [budget, all] of groupBy(single, (pod) => budgetsOf.get(pod)?.[0] as Budget)) {
    const pods = all.filter((pod) => needsBudget(pod, budget));
    const verdict = verdicts.get(budget);
    if (pods.length === 0 || verdict === undefined) continue;
    const blocker = budgetBlocker(budget, verdict, pods, unplaced);
    if (blocker !== null) found.push({ ...blocker, pods: namesOf(pods), budgets: [budget.name] });
  }
  return found;
}

function budgetBlocker(
  { name, disruptionsAllowed }: Budget,
  { state, why, fix }: BudgetVerdict,
  pods: readonly DrainPod[],
  unplaced: ReadonlySet<string>,
): Pick<DrainBlocker, 'kind' | 'isRefusal' | 'why' | 'fix'> | null {
  const subject = `PodDisruptionBudget ${name}`;
  if (state === 'deadlock') return { kind: 'deadlock', isRefusal: true, why: `${subject} never allows an eviction: ${why}`, fix };
  if (state === 'operator') return { kind: 'operator', isRefusal: false, why: `${subject} allows no eviction: ${why}`, fix };
  if (state === 'waits') return { kind: 'budget', isRefusal: false, why: `${subject} allows no eviction now: ${why}`, fix };
  if (pods.length <= disruptionsAllowed) return null;
  const only = `${subject} allows ${disruptionsAllowed} of ${pods.length} evictions at a time`;
  const homeless = pods.filter((pod) => unplaced.has(pod.name)).length;
  if (homeless > 0)
    return {
      kind: 'no-room',
      isRefusal: false,
      why: `${only}, and ${homeless} of these pods fit on no other node (estimate)`,
      fix: 'Make room on other nodes, or add a node',
    };
  return { kind: 'budget', isRefusal: false, why: only, fix: 'The drain waits until replaced pods are Ready' };
}
