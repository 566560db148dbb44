import type { Position, Problem } from '../base/errors.ts';
import { showFieldPath } from '../codec/field-path.ts';
import { sortProblems } from '../kubeadm/config/origins.ts';

/** Where something of a fleet was written. */
export interface Place {
  readonly position: Position;
  /** Path inside the document; empty for what an import says. */
  readonly path: string;
}

/** More problems of one kind help nobody. */
const MAX_OF_A_KIND = 20;

/** Gathers problems: what many hosts share is said once, with the first of them, and how many more there are. */
export class Findings {
  readonly #problems: Problem[] = [];
  readonly #shared = new Map<string, { readonly make: (others: number) => Problem; readonly place: Place; hosts: number }>();

  get isEmpty(): boolean {
    return this.#problems.length === 0 && this.#shared.size === 0;
  }

  add(problem: Problem, place: Place): void {
    this.#problems.push(placed(problem, place));
  }

  /** @param make the problem as the first host has it, with the number of other hosts that have it too */
  addShared(key: string, place: Place, make: (others: number) => Problem): void {
    const id = `${key}\0${place.position.file}\0${place.position.line}:${place.position.column}`;
    const known = this.#shared.get(id);
    if (known) known.hosts++;
    else this.#shared.set(id, { make, place, hosts: 1 });
  }

  /** Adds as it is what has its place already. */
  addAll(problems: readonly Problem[]): void {
    this.#problems.push(...problems);
  }

  /** In the order of their places, few of each kind. */
  list(): readonly Problem[] {
    const shared = [...this.#shared.values()].map(({ make, place, hosts }) => placed(make(hosts - 1), place));
    const counts = new Map<string, number>();
    const kept: Problem[] = [];
    for (const problem of sortProblems([...this.#problems, ...shared])) {
      const count = (counts.get(problem.code) ?? 0) + 1;
      counts.set(problem.code, count);
      if (count <= MAX_OF_A_KIND) kept.push(problem);
    }
    return [...kept, ...[...counts].flatMap(([code, count]) => (count > MAX_OF_A_KIND ? [more(code, count - MAX_OF_A_KIND, kept)] : []))];
  }
}

function placed(problem: Problem, { position, path }: Place): Problem {
  return { ...problem, position, ...(path === '' ? {} : { path: showFieldPath(path) }) };
}

function more(code: string, count: number, kept: readonly Problem[]): Problem {
  const severity = kept.find((problem) => problem.code === code)?.severity;
  return { code, message: `and ${count} more of this kind`, ...(severity === undefined ? {} : { severity }) };
}
