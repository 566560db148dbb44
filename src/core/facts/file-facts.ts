import { defineFact, type Fact } from './fact.ts';
import type { FileFact, Question } from './question.ts';

/** What stands at each of these paths, content included. */
export function fileFacts(paths: readonly string[]): Fact<ReadonlyMap<string, FileFact | null>> {
  const questions: Record<string, Question> = {};
  for (const path of paths) questions[path] = { kind: 'file', path };
  return defineFact(
    questions,
    (answers) => new Map(paths.map((path) => [path, (answers as Record<string, FileFact | null>)[path] ?? null])),
  );
}
