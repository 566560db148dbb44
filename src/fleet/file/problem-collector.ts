import type { Position, Problem } from '../../base/errors.ts';
import { showFieldPath } from '../../codec/field-path.ts';
import { sortProblems } from '../../kubeadm/config/origins.ts';

export interface SettingLocation {
  readonly position: Position;
  /** Path inside the document; empty for imported settings. */
  readonly path: string;
}

const MAX_OF_A_KIND = 20;

/**
 * Collects problems. A problem of many hosts is reported once, with the first host and the number of others.
 */
export class ProblemCollector {
  readonly #problems: Problem[] = [];
  readonly #shared = new Map<string, { readonly make: (others: number) => Problem; readonly place: SettingLocation; hosts: number }>();

  get isEmpty(): boolean {
    return this.#problems.length === 0 && this.#shared.size === 0;
  }

  add(problem: Problem, place: SettingLocation): void {
    this.#problems.push(placed(problem, place));
  }

  /**
   * @param make builds the problem of the first host, given the number of other hosts with the same problem
   */
  addShared(key: string, place: SettingLocation, make: (others: number) => Problem): void {
    const id = `${key}\0${place.position.file}\0${place.position.line}:${place.position.column}`;
    const known = this.#shared.get(id);
    if (known) known.hosts++;
    else this.#shared.set(id, { make, place, hosts: 1 });
  }

  /** Adds problems that already have a position. */
  addAll(problems: readonly Problem[]): void {
    this.#problems.push(...problems);
  }

  /** In order of their positions, limited per kind. */
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

function placed(problem: Problem, { position, path }: SettingLocation): Problem {
  return { ...problem, position, ...(path === '' ? {} : { path: showFieldPath(path) }) };
}

function more(code: string, count: number, kept: readonly Problem[]): Problem {
  return {
    code,
    message: `${count} more ${count === 1 ? 'problem' : 'problems'} with this code`,
    severity: kept.find((problem) => problem.code === code)?.severity,
  };
}
