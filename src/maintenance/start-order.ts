/** The place of a member in the order of a rollout. */
export interface PlacedMember {
  /** Unavailable, for any reason; absent: unknown. */
  readonly isDown?: boolean;
  /** A member starts when all members of lower stages have ended. Default: 0. */
  readonly stage?: number | undefined;
  /** The zone of its Node; absent: unknown. */
  readonly zone?: string | undefined;
}

/** Orders of the members of a stage. */
export type RolloutOrder = 'zone' | 'spread';

export interface OrderRules {
  /**
   * `zone`: a zone starts when the one before it has ended, in the order of their names · `spread`: members in progress are
   * spread over the zones. Members of unknown zones are last. Default: the order of the run.
   */
  readonly order?: RolloutOrder | undefined;
  /** Members that are down are first, because the change may repair them. Default: last. */
  readonly downFirst?: boolean;
}

export function stageOf({ stage = 0 }: PlacedMember): number {
  return stage;
}

/**
 * The order in which members start, and which are open: members of later stages and zones wait.
 * @param left.openStage the lowest stage with members that have not ended
 */
export function startOrder<M extends PlacedMember>(
  members: readonly M[],
  rules: OrderRules,
  { openStage, isLeft }: { readonly openStage: number; readonly isLeft: (member: M) => boolean },
) {
  const turns = turnsOf(members, rules);
  const turnOf = (member: M): number => turns.get(member) ?? 0;
  let openTurn = LAST_TURN;
  if (rules.order === 'zone')
    for (const member of members) if (stageOf(member) === openStage && isLeft(member)) openTurn = Math.min(openTurn, turnOf(member));
  return {
    byTurn: (a: M, b: M): number => stageOf(a) - stageOf(b) || turnOf(a) - turnOf(b),
    isOpen: (member: M): boolean => stageOf(member) < openStage || (stageOf(member) === openStage && turnOf(member) <= openTurn),
  };
}

const LAST_TURN = Number.MAX_SAFE_INTEGER;

/** By zone, or by place in the zone. Members that are down are last, so that other zones do not wait for them. */
function turnsOf<M extends PlacedMember>(members: readonly M[], { order, downFirst = false }: OrderRules): ReadonlyMap<M, number> {
  const turns = new Map<M, number>();
  if (order === undefined) return turns;
  const zones = [...new Set(members.flatMap(({ zone }) => zone ?? []))].sort();
  const ranks = new Map(zones.map((zone, rank) => [zone, rank]));
  const places = new Map<string, number>();
  for (const member of members) {
    const { zone, isDown } = member;
    const place = zone === undefined ? LAST_TURN : (places.get(zone) ?? 0);
    if (zone !== undefined) places.set(zone, place + 1);
    const turn = order === 'spread' ? place : (ranks.get(zone ?? '') ?? zones.length);
    turns.set(member, isDown === true && !downFirst ? LAST_TURN : turn);
  }
  return turns;
}

/** The next members to start, those of the zones with the fewest members in progress first. */
export function spreadOver<M extends PlacedMember>(active: readonly M[], candidates: readonly M[], count: number): readonly M[] {
  const start: M[] = [];
  const left = [...candidates];
  const busy = (zone: string): number => [...active, ...start].filter((member) => member.zone === zone).length;
  while (start.length < count && left.length > 0) {
    const loads = new Map([...new Set(left.flatMap(({ zone }) => zone ?? []))].map((zone) => [zone, busy(zone)]));
    const loadOf = ({ zone }: M): number => loads.get(zone ?? '') ?? LAST_TURN;
    const least = Math.min(...left.map(loadOf));
    start.push(
      ...left.splice(
        left.findIndex((member) => loadOf(member) === least),
        1,
      ),
    );
  }
  return start;
}
