import { type AST, RegExpParser } from '@eslint-community/regexpp';

/** The worst-case cost of a regular expression on a text that does not match. */
export interface RegexCost {
  readonly growth: 'linear' | 'polynomial' | 'exponential' | 'unknown';
  /** The repeated part of a worst-case text, or the reason why the cost is unknown. */
  readonly witness: string;
}

/**
 * Estimates how the running time of a backtracking engine grows with the length of the text.
 *
 * The pattern becomes a graph: one node per position that reads a character, and one for the search, which
 * starts at every character. Time is exponential when a node reaches itself in two ways by the same word, and
 * polynomial when two loops follow each other and the same word leads around both loops and from the first to
 * the second; each only if the rest of the pattern can still fail. Look-arounds and word boundaries are
 * treated as if they matched.
 * @see Weber, Seidl: On the degree of ambiguity of finite automata (1991); Wüstholz et al.: Static
 *   detection of DoS
 *   vulnerabilities in programs that use regular expressions (2017)
 */
export function regexCost(pattern: string, flags: string): RegexCost {
  const parsed = new RegExpParser().parseLiteral(`/${pattern || '(?:)'}/${flags}`);
  try {
    return costOf(new Automaton(parsed.pattern, parsed.flags));
  } catch (error) {
    if (error instanceof Unsupported) return { growth: 'unknown', witness: error.message };
    throw error;
  }
}

class Unsupported extends Error {}

/** A part with more copies than this, like `{1,2000}`, is treated as a loop. */
const MAX_COPIES = 300;
const MAX_NODES = 4000;

/**
 * The letters that may precede a position; the last element: whether the position may be the start of the
 * text; null: anything.
 */
type Before = readonly boolean[] | null;

/**
 * A path through a part of a pattern that reads nothing: the required preceding letters (`^`), and whether
 * the text must end (`$`).
 */
interface EmptyWay {
  readonly before: Before;
  readonly end: boolean;
}

/**
 * A part of a pattern: its paths without a character, its first and its last nodes. A duplicate entry means
 * two paths.
 */
interface Part {
  readonly empty: readonly EmptyWay[];
  readonly first: readonly { readonly node: number; readonly before: Before }[];
  readonly last: readonly { readonly node: number; readonly end: boolean }[];
}

const NOTHING: Part = { empty: [{ before: null, end: false }], first: [], last: [] };

class Automaton {
  /**
   * One representative character per class of characters that the pattern distinguishes; for each node those
   * that it reads.
   */
  readonly letters: readonly string[];
  readonly reads: (readonly boolean[])[] = [];
  /** The successors of each node, one entry per path. */
  readonly next: number[][] = [];
  /** Whether a node accepts with any following text, at the end of the text, or at the end of a line. */
  readonly accepts: ('always' | 'at end' | 'at line end' | null)[] = [];
  /** The nodes in a lazy loop. */
  readonly lazy = new Set<number>();
  /**
   * The search, which reads any character and restarts: one node per class of letters after which the same
   * matches can start.
   */
  readonly searches: readonly number[];
  readonly start: number;
  readonly #flags: AST.Flags;
  readonly #sets = new Map<string, readonly boolean[]>();
  readonly isNewline: readonly boolean[];

  constructor(pattern: AST.Pattern, flags: AST.Flags) {
    this.#flags = flags;
    const all = lettersOf(pattern);
    const sources = charactersOf(pattern).map(({ raw }) => raw);
    const tests = [...new Set([...sources, '[^]', '\\n'])].map((raw) => [raw, this.#matcher(raw)] as const);
    const signature = (letter: string): string => tests.map(([, test]) => (test.test(letter) ? '1' : '0')).join('');
    this.letters = [...new Map(all.toReversed().map((letter) => [signature(letter), letter] as const)).values()];
    for (const [raw, test] of tests)
      this.#sets.set(
        raw,
        this.letters.map((letter) => test.test(letter)),
      );
    this.isNewline = this.letters.map((letter) => /[\n\r\u2028\u2029]/.test(letter));

    const root = this.#alternatives(pattern.alternatives);
    const entries = [...root.first, ...root.empty].map(({ before }) => before);
    const allowed = (place: number): string => entries.map((before) => (before?.[place] === false ? '0' : '1')).join('');
    const groups = new Map<string, number[]>();
    for (const letter of this.letters.keys()) groups.set(allowed(letter), [...(groups.get(allowed(letter)) ?? []), letter]);
    this.searches = flags.sticky
      ? []
      : [...groups.values()].map((group) => this.#node(this.letters.map((_, letter) => group.includes(letter))));
    this.start = this.#node(this.letters.map(() => false));
    const places = [...groups.values()].map(([letter = 0]) => letter);
    for (const [from, place] of [
      [this.start, this.letters.length] as const,
      ...this.searches.map((node, i) => [node, places[i] as number] as const),
    ]) {
      this.next[from]?.push(...this.searches, ...root.first.filter(({ before }) => before?.[place] !== false).map(({ node }) => node));
      this.accepts[from] = this.#acceptance(root.empty.filter(({ before }) => before?.[place] !== false).map(({ end }) => end));
    }
    const ends = new Map<number, boolean[]>();
    for (const { node, end } of root.last) ends.set(node, [...(ends.get(node) ?? []), end]);
    for (const [node, list] of ends) this.accepts[node] = this.#acceptance(list);
  }

  #acceptance(ends: readonly boolean[]): Automaton['accepts'][number] {
    if (ends.length === 0) return null;
    return ends.includes(false) ? 'always' : this.#flags.multiline ? 'at line end' : 'at end';
  }

  #matcher(raw: string): RegExp {
    const { ignoreCase, dotAll, unicode, unicodeSets } = this.#flags;
    return new RegExp(`^(?:${raw})$`, `${ignoreCase ? 'i' : ''}${dotAll ? 's' : ''}${unicode ? 'u' : ''}${unicodeSets ? 'v' : ''}`);
  }

  #node(reads: readonly boolean[]): number {
    if (this.reads.length > MAX_NODES) throw new Unsupported('it is too large');
    this.reads.push(reads);
    this.next.push([]);
    this.accepts.push(null);
    return this.reads.length - 1;
  }

  #alternatives(alternatives: readonly AST.Alternative[]): Part {
    const parts = alternatives.map(({ elements }) =>
      elements.reduce((part, element) => this.#concat(part, this.#element(element)), NOTHING),
    );
    return {
      empty: few(parts.flatMap(({ empty }) => empty)),
      first: parts.flatMap(({ first }) => first),
      last: parts.flatMap(({ last }) => last),
    };
  }

  #element(element: AST.Element): Part {
    switch (element.type) {
      case 'Group':
      case 'CapturingGroup':
        return this.#alternatives(element.alternatives);
      case 'Backreference':
        if (Array.isArray(element.resolved)) throw new Unsupported('it refers to one of several groups');
        return this.#alternatives((element.resolved as AST.CapturingGroup).alternatives);
      case 'Quantifier':
        return this.#quantified(element);
      case 'Assertion':
        return this.#assertion(element);
      case 'Character':
      case 'CharacterSet':
      case 'CharacterClass': {
        const node = this.#node(this.#sets.get(element.raw) as readonly boolean[]);
        return { empty: [], first: [{ node, before: null }], last: [{ node, end: false }] };
      }
      default:
        throw new Unsupported(`it has a ${element.type}`);
    }
  }

  #assertion(assertion: AST.Assertion): Part {
    switch (assertion.kind) {
      case 'start':
        return {
          ...NOTHING,
          empty: [{ before: [...this.letters.map((_, i) => this.#flags.multiline && this.isNewline[i] === true), true], end: false }],
        };
      case 'end':
        return { ...NOTHING, empty: [{ before: null, end: true }] };
      case 'word':
        return NOTHING;
      case 'lookahead':
        // A look-around reads its text and leads nowhere; the rest of the pattern starts next to it.
        return { ...NOTHING, first: this.#alternatives(assertion.alternatives).first };
      default:
        return { ...NOTHING, empty: [{ before: this.#behind(assertion), end: false }] };
    }
  }

  /** Single characters that must or must not precede. */
  #behind({ alternatives, negate }: AST.LookbehindAssertion): Before {
    const sets = alternatives.map(({ elements: [element, ...more] }) =>
      element === undefined || more.length > 0 ? undefined : this.#sets.get(element.raw),
    );
    if (sets.includes(undefined)) throw new Unsupported('it looks behind for more than a character');
    return [...this.letters.map((_, letter) => sets.some((set) => set?.[letter] === true) !== negate), negate];
  }

  #quantified({ element, min, max, greedy }: AST.Quantifier): Part {
    const isLoop = max === Number.POSITIVE_INFINITY || max > MAX_COPIES;
    const before = this.reads.length;
    let part: Part = isLoop ? this.#loop(this.#element(element), min === 0) : NOTHING;
    if (!isLoop) for (let i = min; i < max; i++) part = optional(this.#concat(this.#element(element), part));
    if (isLoop && !greedy) for (let node = before; node < this.reads.length; node++) this.lazy.add(node);
    const copies = Math.min(isLoop ? min - 1 : min, MAX_COPIES);
    for (let i = 0; i < copies; i++) part = this.#concat(this.#element(element), part);
    return part;
  }

  /** The last iteration reads something: an empty one ends a loop. */
  #loop(part: Part, isOptional: boolean): Part {
    this.#link(part, part);
    return isOptional ? optional({ ...part, empty: [] }) : part;
  }

  #concat(a: Part, b: Part): Part {
    this.#link(a, b);
    const { empty: left } = a;
    const { empty: right } = b;
    return {
      empty: few(left.flatMap((one) => right.map((two) => ({ before: both(one.before, two.before), end: one.end || two.end })))),
      // After `$` only a newline is read, with the flag m.
      first: [
        ...a.first,
        ...left
          .filter(({ end }) => !end || this.#flags.multiline)
          .flatMap((route) => b.first.map((one) => ({ ...one, before: both(one.before, route.before) }))),
      ],
      last: [
        ...b.last,
        ...right.flatMap((route) =>
          a.last.filter(({ node }) => this.#canPrecede(node, route.before)).map((one) => ({ ...one, end: one.end || route.end })),
        ),
      ],
    };
  }

  #link(a: Part, b: Part): void {
    for (const from of a.last)
      for (const to of b.first) {
        if (from.end && !(this.#flags.multiline && this.#hasNewline(to.node))) continue;
        if (!this.#canPrecede(from.node, to.before)) continue;
        const routes = this.next[from.node] as number[];
        if (routes.filter((node) => node === to.node).length < 2) routes.push(to.node);
      }
  }

  #canPrecede(node: number, before: Before): boolean {
    return before === null || this.reads[node]?.some((reads, letter) => reads && before[letter] === true) === true;
  }

  #hasNewline(node: number): boolean {
    return this.reads[node]?.some((reads, letter) => reads && this.isNewline[letter] === true) === true;
  }
}

function optional(part: Part): Part {
  return { ...part, empty: few([...part.empty, { before: null, end: false }]) };
}

function both(a: Before, b: Before): Before {
  if (a === null || b === null) return a ?? b;
  return a.map((may, i) => may && b[i] === true);
}

/** More than two paths of a kind are as bad as two. */
function few(routes: readonly EmptyWay[]): readonly EmptyWay[] {
  const keys = routes.map((route) => JSON.stringify(route));
  return routes.filter((_, i) => keys.slice(0, i).filter((key) => key === keys[i]).length < 2);
}

function charactersOf(node: AST.Pattern | AST.Assertion): readonly (AST.Character | AST.CharacterSet | AST.CharacterClass)[] {
  const found: (AST.Character | AST.CharacterSet | AST.CharacterClass)[] = [];
  const visit = (each: AST.Node): void => {
    if (each.type === 'Character' || each.type === 'CharacterSet' || each.type === 'CharacterClass') found.push(each);
    else if ('alternatives' in each) for (const one of each.alternatives) visit(one);
    else if ('elements' in each) for (const one of each.elements) visit(one);
    else if ('element' in each) visit(each.element);
  };
  visit(node);
  return found;
}

/**
 * One character of every class that a pattern distinguishes: ASCII, some others, and the limits of its
 * ranges.
 */
function lettersOf(pattern: AST.Pattern): readonly string[] {
  const codes = new Set([
    ...Array.from({ length: 128 }, (_, code) => code),
    0x85,
    0xa0,
    0xe9,
    0x130,
    0x17f,
    0x2028,
    0x202e,
    0x212a,
    0x3042,
    0xfeff,
    0xfffd,
  ]);
  for (const { raw } of charactersOf(pattern)) for (const character of raw) codes.add(character.codePointAt(0) as number);
  for (const [, hex = ''] of pattern.raw.matchAll(/\\(?:x|u\{?)([0-9a-fA-F]{2,6})/g))
    for (const code of [-1, 0, 1].map((step) => Number.parseInt(hex, 16) + step)) if (code >= 0 && code <= 0x10ffff) codes.add(code);
  return [...codes].map((code) => String.fromCodePoint(code));
}

function costOf(automaton: Automaton): RegexCost {
  const { reads, next, letters, searches, start, lazy, accepts } = automaton;
  const certain = certainNodes(automaton);
  // A pattern that always matches at the first position is not searched.
  const ignored = new Set(certain.has(start) ? searches : []);
  const follow: Follow = (node, letter) => {
    const routes = (next[node] ?? []).filter((to) => reads[to]?.[letter] === true);
    // A match ends the search.
    return routes.some((to) => accepts[to] === 'always') ? [] : routes;
  };
  const loops = loopsOf(next, reads).map((loop) => loop.filter((node) => !ignored.has(node)));
  const failing = loops
    .map((loop) => loop.filter((node) => !certain.has(node) && !searches.includes(node)))
    .filter((loop) => loop.length > 0);
  // A lazy loop tries the rest of the pattern repeatedly, even if it finally matches.
  const trying = loops.map((loop) => loop.filter((node) => !certain.has(node) || lazy.has(node))).filter((loop) => loop.length > 0);
  for (const loop of failing) {
    const word = twoWaysRound(loop, follow, letters.length);
    if (word !== null) return { growth: 'exponential', witness: text(word, letters) };
  }
  for (const one of trying)
    for (const two of failing) {
      if (one.some((node) => two.includes(node))) continue;
      const word = fromLoopToLoop(one, two, follow, letters.length);
      if (word !== null) return { growth: 'polynomial', witness: text(word, letters) };
    }
  return { growth: 'linear', witness: '' };
}

function text(word: readonly number[], letters: readonly string[]): string {
  return JSON.stringify(word.map((letter) => letters[letter]).join(''));
}

/** Nodes from which the pattern always matches: the engine never backtracks from them. */
function certainNodes({ next, reads, accepts, letters, isNewline, searches }: Automaton): ReadonlySet<number> {
  const certain = new Set(next.keys());
  for (let size = -1; size !== certain.size; ) {
    size = certain.size;
    for (const node of certain) {
      const accepted = accepts[node] ?? null;
      const holds =
        accepted === 'always' ||
        (accepted !== null &&
          letters.every(
            (_, letter) =>
              (accepted === 'at line end' && isNewline[letter] === true) ||
              next[node]?.some((to) => certain.has(to) && !searches.includes(to) && reads[to]?.[letter] === true) === true,
          ));
      if (!holds) certain.delete(node);
    }
  }
  return certain;
}

/** The strongly connected components with a cycle. */
function loopsOf(next: readonly (readonly number[])[], reads: readonly (readonly boolean[])[]): readonly (readonly number[])[] {
  const canRead = (node: number): boolean => reads[node]?.includes(true) === true;
  const reach = next.map((_, from) => {
    const found = new Set<number>();
    const open = [from];
    for (let node = open.pop(); node !== undefined; node = open.pop())
      for (const to of next[node] ?? [])
        if (!found.has(to) && canRead(to)) {
          found.add(to);
          open.push(to);
        }
    return found;
  });
  const loops: number[][] = [];
  const seen = new Set<number>();
  for (const [node, reached] of reach.entries()) {
    if (seen.has(node) || !reached.has(node)) continue;
    const loop = [...reached].filter((other) => reach[other]?.has(node) === true);
    for (const each of loop) seen.add(each);
    loops.push(loop);
  }
  return loops;
}

type Follow = (node: number, letter: number) => readonly number[];

/** A word by which a node of a loop reaches itself in two ways; null: none. */
function twoWaysRound(loop: readonly number[], follow: Follow, letters: number): readonly number[] | null {
  const inside = new Set(loop);
  for (const node of loop)
    for (let letter = 0; letter < letters; letter++) {
      const routes = follow(node, letter).filter((to) => inside.has(to));
      const twice = routes.find((to, i) => routes.indexOf(to) !== i);
      if (twice !== undefined) return [letter, ...(wordFrom([twice], [node], follow, letters, inside) ?? [])];
    }
  for (const node of loop) {
    const word = search([node, node], (state, letter) => pairs(state, letter, follow, inside), {
      isGoal: (state, parted) => parted && state[0] === node && state[1] === node,
      parts: (state) => state[0] !== state[1],
      letters,
    });
    if (word !== null) return word;
  }
  return null;
}

function pairs(state: readonly number[], letter: number, follow: Follow, inside: ReadonlySet<number>): readonly (readonly number[])[] {
  const [a, b] = state.map((node) => [...new Set(follow(node, letter))].filter((to) => inside.has(to))) as [number[], number[]];
  return a.flatMap((left) => b.map((right) => [left, right]));
}

/** A word around one loop, around another, and from the first to the second; null: none. */
function fromLoopToLoop(one: readonly number[], two: readonly number[], follow: Follow, letters: number): readonly number[] | null {
  const [first, second] = [new Set(one), new Set(two)];
  for (const p of one)
    for (const q of two) {
      const step = (state: readonly number[], letter: number): readonly (readonly number[])[] => {
        const round = follow(state[0] as number, letter).filter((to) => first.has(to));
        const route = round.length === 0 ? [] : [...new Set(follow(state[1] as number, letter))];
        const other = route.length === 0 ? [] : follow(state[2] as number, letter).filter((to) => second.has(to));
        return [...new Set(round)].flatMap((a) => route.flatMap((b) => [...new Set(other)].map((c) => [a, b, c])));
      };
      const word = search([p, p, q], step, { isGoal: ([a, b, c]) => a === p && b === q && c === q, parts: () => true, letters });
      if (word !== null) return word;
    }
  return null;
}

function wordFrom(
  from: readonly number[],
  to: readonly number[],
  follow: Follow,
  letters: number,
  inside: ReadonlySet<number>,
): readonly number[] | null {
  if (from[0] === to[0]) return [];
  const step = ([node]: readonly number[], letter: number): readonly (readonly number[])[] =>
    follow(node as number, letter)
      .filter((each) => inside.has(each))
      .map((each) => [each]);
  return search(from, step, { isGoal: ([node]) => node === to[0], parts: () => true, letters });
}

interface SearchOptions {
  readonly isGoal: (state: readonly number[], parted: boolean) => boolean;
  /** Whether a state is a required intermediate state. */
  readonly parts: (state: readonly number[]) => boolean;
  readonly letters: number;
}

/** The shortest word from a state to the goal, at least one letter long. */
function search(
  from: readonly number[],
  step: (state: readonly number[], letter: number) => readonly (readonly number[])[],
  { isGoal, parts, letters }: SearchOptions,
): readonly number[] | null {
  const seen = new Set<string>();
  let front: { readonly state: readonly number[]; readonly parted: boolean; readonly word: readonly number[] }[] = [
    { state: from, parted: false, word: [] },
  ];
  while (front.length > 0) {
    const reached: typeof front = [];
    for (const { state, parted, word } of front)
      for (let letter = 0; letter < letters; letter++)
        for (const to of step(state, letter)) {
          const isParted = parted || parts(to);
          const longer = [...word, letter];
          if (isGoal(to, isParted)) return longer;
          const key = `${to.join()}${isParted}`;
          if (seen.has(key)) continue;
          seen.add(key);
          reached.push({ state: to, parted: isParted, word: longer });
        }
    front = reached;
  }
  return null;
}
