import { defineFact, type Fact } from './fact.ts';
import { type FactQuery, type FileFact, queryKey } from './query.ts';

/** The file at each of these paths, with its content. */
export function fileFacts(paths: readonly string[]): Fact<ReadonlyMap<string, FileFact | null>> {
  const asked = paths.map((path) => {
    const question: FactQuery = { kind: 'file', path };
    return { path, key: queryKey(question), question };
  });
  return defineFact(Object.fromEntries(asked.map(({ key, question }) => [key, question])), (answers) => {
    const found = new Map<string, FileFact | null>();
    for (const { path, key } of asked) found.set(path, (answers as Record<string, FileFact | null>)[key] ?? null);
    return found;
  });
}
