import type { Fact } from './fact.ts';
import { type FactQueries, type FactQuery, type FactQueryResults, type FileFact, queryKey } from './query.ts';

/** The file at each of these paths. @param options of the query; default: with its content */
export function fileFacts(
  paths: readonly string[],
  options: Omit<Extract<FactQuery, { readonly kind: 'file' }>, 'kind' | 'path'> = {},
): Fact<ReadonlyMap<string, FileFact | null>> {
  const asked = paths.map((path) => {
    const question: FactQuery = { kind: 'file', path, ...options };
    return { path, key: queryKey(question), question };
  });
  return {
    queries: Object.fromEntries(asked.map(({ key, question }) => [key, question])),
    areKeys: true,
    parse: (answers: FactQueryResults<FactQueries>) =>
      new Map(asked.map(({ path, key }) => [path, (answers[key] ?? null) as FileFact | null])),
  };
}
