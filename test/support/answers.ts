import type { Fact } from '../../src/host/facts/fact.ts';
import { parseEach } from '../../src/host/facts/parse-text.ts';
import type { CommandFact, FactQueries, FactQueryResults, FileFact } from '../../src/host/facts/query.ts';

/** The result of a successful command, with its output. */
export function commandOutput(stdout: string): CommandFact {
  return { exitCode: 0, stdout, stderr: '' };
}

/** A failed command; 127 means that the program does not exist. */
export function commandFailure(exitCode: number | null = 127, stderr = 'not found'): CommandFact {
  return { exitCode, stdout: '', stderr };
}

/** A regular file of root, 0644. */
export function textFile(content: string, change: Partial<FileFact> = {}): FileFact {
  return { type: 'file', mode: 0o644, owner: 'root:root', content, ...change };
}

/** Parses a fact from the given answers; all others are answered as by an empty host. */
export function parseFact<T>(fact: Fact<T>, given: Readonly<Record<string, unknown>>): T {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(fact.queries, name));
  if (unknown.length > 0) throw new Error(`the fact does not ask: ${unknown.join(', ')}`);
  const answers = Object.entries(fact.queries).map(([name, { kind }]) => [name, Object.hasOwn(given, name) ? given[name] : NOTHING[kind]]);
  return fact.parse(Object.fromEntries(answers) as FactQueryResults<FactQueries>, parseEach);
}

const NOTHING = { file: null, list: null, command: commandFailure(), http: { error: 'Connection refused' } } as const;
