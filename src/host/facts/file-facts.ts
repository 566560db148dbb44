import { TextMemo } from '../../base/memo.ts';
import { defineFact, type Fact } from './fact.ts';
import { type FactQuery, type FileFact, queryKey } from './query.ts';

type FileFacts = Fact<ReadonlyMap<string, FileFact | null>>;

/** The file at each of these paths, with its content. Equal paths give the same fact. */
export function fileFacts(paths: readonly string[]): FileFacts {
  return FACTS.get(paths.join('\0'), () => factsOf([...paths]));
}

/** Most hosts have the same paths. */
const FACTS = new TextMemo<FileFacts>();

function factsOf(paths: readonly string[]): FileFacts {
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
